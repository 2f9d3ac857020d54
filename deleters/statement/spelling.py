"""How statements spell definitions: names without numbers, kinds, parameters."""

from __future__ import annotations

import re
from collections.abc import Iterable

from excise.types import Symbol, SymbolKind

_BEFORE_PARAMETERS = re.compile(r"^(?:async )?(?:def|class) \w+ ?(?:\[.*?\])?(?=\(|$)")


def unnumbered(name: str) -> str:
    """A name without the numbers that tell definitions of the same name apart."""
    return re.sub(r"#\d+", "", name)


def exported_by(path: str) -> str:
    """How a statement calls the function without a name that a file exports."""
    return f"the function that `{path}` exports"


def accessor_of(symbol: Symbol) -> str:
    """``setter`` or ``deleter`` for one of a property, whose name it has; empty for other symbols."""
    return next((k for k in ("setter", "deleter") if any(d.endswith(f".{k}") for d in symbol.decorators)), "")


def kind_and_name(symbol: Symbol) -> str:
    """Kind and name of a symbol, without its parameters."""
    if symbol.kind is SymbolKind.MODULE:
        return "module"
    name = unnumbered(symbol.qualname)
    marks = {decorator.partition("(")[0].rpartition(".")[2] for decorator in symbol.decorators}
    kind = str(symbol.kind)
    if symbol.kind is SymbolKind.CLASS:
        bases = _parameters(symbol)[1:-1]
        return f"class `{name}`" + (f" (of `{bases}`)" if bases else "")
    if marks & {"property", "cached_property"}:
        kind = "property"
    elif accessor := accessor_of(symbol):
        kind = f"{accessor} of property"
    elif marks & {"classmethod", "staticmethod"}:
        kind = "class method" if "classmethod" in marks else "static method"
    return f"{'async ' if symbol.is_async else ''}{kind} `{name}`"


def _parameters(symbol: Symbol) -> str:
    """The parameters of a function, such as ``(a, b=1)``, or the bases of a class."""
    rest = _BEFORE_PARAMETERS.sub("", symbol.signature)
    end = rest.rfind(" -> ") if " -> " in rest and symbol.is_callable else len(rest)
    return rest[: rest.rfind(")", 0, end) + 1]


def without_parameters(text: str, symbols: Iterable[Symbol]) -> str:
    """The text without the signatures of ``symbols``, and without a first line that repeats the signature."""
    for symbol in symbols:
        name, parameters = unnumbered(symbol.name), _parameters(symbol)
        if symbol.is_callable and len(parameters) > 2:
            own = re.sub(r"^\((?:self|cls)(?:, )?", "(", parameters)
            for spelled in {parameters, own} - {"()"}:
                text = text.replace(name + spelled, name)
            text = re.sub(rf"\A{re.escape(name)}\(.*\).*\n", "", text)
    return text


def signature_or_path(symbol: Symbol) -> str:
    """The signature of a definition; of a module, its path."""
    return symbol.signature or symbol.path
