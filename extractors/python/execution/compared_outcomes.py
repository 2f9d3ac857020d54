"""Compares outcomes of calls, with the leniency that honest solutions need."""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Sequence
from typing import Any

from excise.extractors.python.execution.float_bits import float_of
from excise.extractors.python.execution.quoted_messages import lacks_quoted_message
from excise.types import RecordedCall

_HELP = re.compile(r"(?i)usage: (?=[\s\S]{0,10000}(?:\[-h\]|--help\b))")
"""Beginning of the help text of a command, which has an option for it."""
_PROGRAM = re.compile(r"(?i:usage:)\s+(?:\S{0,200}python\S{0,20}\s+-m\s+)?\S+(?:\s+[a-z][\w.-]*(?!\S))*")
"""Beginning of a usage line with the name of the program, up to the first option, choice or argument in capitals."""
_OPTION = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]*")
_ROW = re.compile(r"(?m)^ {2,4}(\w[\w-]*)")
_COMMAND_LINE = frozenset({"argparse", "optparse", "click", "typer"})
"""Packages whose objects describe command lines."""
_FOR_PEOPLE = frozenset({"usage", "description", "epilog", "help", "short_help", "prog"})
"""Attributes of these objects that only people read, and the name of the program, which may be that of the file that is
run; of printed help, only usage and options are compared."""
_EXIT = "builtins:SystemExit"
_USUAL = frozenset(
    {"AttributeError", "IndexError", "KeyError", "LookupError", "RuntimeError", "TypeError", "ValueError"}
)
"""Errors of Python that code raises for wrong arguments or at a wrong time, which callers seldom tell apart."""
CONTAINERS = frozenset({"l", "d", "S", "dd", "C"})
"""Tags of containers that can lose their members, and that no set holds."""
_MAPPINGS = frozenset({"d", "dd", "C"})
_BASES = {"d": "builtins:dict", "l": "builtins:list"}
"""Tags of dictionaries, those with defaults and counters: each does what a caller asks of a plain one."""
_MALFORMED = (RecursionError, TypeError, ValueError, KeyError, IndexError, AttributeError, struct.error)
"""What comparing raises if a solution's process sent something else than outcomes."""
FLOAT_TOLERANCE = 1e-9
"""Relative difference up to which two floats are equal: adding the same numbers in another order is no error."""


def holds_opaque(node: object) -> bool:
    """Whether an encoded outcome holds a function, or an object of a removed class: these are compared by type."""
    if isinstance(node, dict):
        return any(map(holds_opaque, node.values()))
    return isinstance(node, list) and (node[:1] in (["o"], ["fn"]) or any(map(holds_opaque, node)))


def is_compared_whole(outcome: str) -> bool:
    """See :meth:`excise.protocols.Grading.is_compared_whole`."""
    found = parsed(outcome.encode())
    given, after = found.get("given"), found.get("after")
    both = zip(after, given, strict=False) if isinstance(given, list) and isinstance(after, list) else ()
    return not holds_opaque(found) and not any(_is_used_up(one, other) for one, other in both)


MAX_FEW = 4
"""Number of texts in a list from which on two replays show whether their order is that of hashes."""


def has_few_in_order(node: Any) -> bool:
    """Whether an encoded outcome holds a list of two to :data:`MAX_FEW` different texts."""
    if isinstance(node, dict):
        return any(map(has_few_in_order, node.values()))
    if not isinstance(node, list):
        return False
    if node[:1] in (["l"], ["t"], ["it"]) and len(node) > 1 and isinstance(node[1], list):
        texts = [each[1] for each in node[1] if isinstance(each, list) and len(each) == 2 and each[0] == "s"]
        if 1 < len(set(map(str, texts))) <= MAX_FEW and len(texts) == len(node[1]):
            return True
    return any(map(has_few_in_order, node))


def parsed(data: bytes) -> dict[str, Any]:
    """An untrusted JSON object; empty for anything else."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


# -------------------------------------------------------------------------------------- comparison
def same_outcome(expected: str, found: str, statement: str | None = None) -> bool:
    """Whether two outcomes have equal results, or exceptions of equal types, and equal arguments afterwards.

    Details that callers may not rely on are ignored: messages of exceptions and the arguments after them, printed text
    if the original prints nothing, words for people in a help text, the order of dictionaries (except
    ``OrderedDict``), the last digits of floats, types of iterators and of dictionaries. One of :data:`_USUAL` errors
    may stand for another one that the ``statement``, if there is one, does not name. Where it quotes an exception's
    message, one with none of the quoted texts is another outcome.
    """
    first, second = parsed(expected.encode()), parsed(found.encode())
    if not first or not second:
        return False
    try:
        if not _same_after(first, second):
            return False
        if first.get("printed") and not _same_text(first["printed"], second.get("printed") or ""):
            return False
        first, second = _raised_at_once(first), _raised_at_once(second)
        if "raised" in first or "raised" in second:
            is_same = _same_error(first, second) or _is_untold_error(first, second, statement)
            return is_same and not (statement and lacks_quoted_message(first, second, statement))
        return equal(first.get("result"), second.get("result"))
    except _MALFORMED:
        return False


def _same_after(first: dict[str, Any], second: dict[str, Any]) -> bool:
    """Whether the arguments are equal after the call.

    A container that the original empties on its way to a result (``first["given"]`` has what was passed) may also be
    left as it was. Nothing is compared after an exception, except one that ends the process, and where only the result
    is known.
    """
    raised = _raised_at_once(first).get("raised")
    if "after" not in first or (raised and _EXIT not in raised):
        return True
    mine, theirs = _unread(first.get("after")), _unread(second.get("after"))
    given = first.get("given") if first.get("result") not in (None, ["c", None]) else None
    if not isinstance(mine, list) or not isinstance(theirs, list) or len(mine) != len(theirs):
        return equal(mine, theirs)
    passed = _unread(given) if isinstance(given, list) and len(given) == len(mine) else [None] * len(mine)
    return all(equal(a, b) or (_is_used_up(a, p) and equal(p, b)) for a, b, p in zip(mine, theirs, passed, strict=True))


def _is_used_up(after: Any, before: Any) -> bool:
    """Whether a plain container is empty after a call, and was not before."""
    if not isinstance(after, list) or not isinstance(before, list) or after[:1] != before[:1]:
        return False
    return after[0] in CONTAINERS and not after[-1] and bool(before[-1])


def _unread(node: Any) -> Any:
    """Encoded arguments without the places of their streams and counters, and without what was noted at these: one
    solution reads lines, and another all at once."""
    if not isinstance(node, list):
        return node
    if node[:2] == ["new", "itertools:count"]:
        return node[:2]
    return [*node[:3], 0] if len(node) in {4, 5} and node[0] == "io" else [_unread(each) for each in node]


def same_result(first: str, second: str) -> bool:
    """Whether two outcomes have equal results, or exceptions of equal types, whatever is printed, and whatever becomes
    of the arguments."""
    one, other = ({**parsed(text.encode()), "after": None, "printed": ""} for text in (first, second))
    return same_outcome(json.dumps(one), json.dumps(other))


def _raised_at_once(outcome: dict[str, Any]) -> dict[str, Any]:
    """The outcome of a call; one whose iterator fails at its first item counts as one that raises: who asks for the
    items cannot tell them apart."""
    result = outcome.get("result")
    if not isinstance(result, list) or result[:2] != ["it", []] or result[2] in {"end", "more"}:
        return outcome
    return {**outcome, "raised": [result[2]]}


def _same_text(first: str, second: str) -> bool:
    """Whether printed texts are equal; of help texts of commands, whether they have the same words of usage, in any
    order, and list the same options."""
    if _HELP.match(first) and _HELP.match(second):
        return _usage_and_rows(first) == _usage_and_rows(second)
    return first == second


def _usage_and_rows(text: str) -> tuple[list[str], set[str]]:
    """The words of usage after the program's name, sorted, and the beginnings of the rows of a help text with its
    options."""
    usage, _, rest = text.partition("\n\n")
    return sorted(re.findall(r"\w+", _PROGRAM.sub("", usage, count=1))), {*_OPTION.findall(rest), *_ROW.findall(rest)}


def _same_error(first: dict[str, Any], second: dict[str, Any]) -> bool:
    """Whether the exception is of the original's public class, a subclass, or a base that is no class of Python's.

    A docstring may promise only the base class of a project's exceptions. Exit codes must be equal, too.
    """
    wanted, found = first.get("raised") or [], second.get("raised") or []
    known = next((name for name in wanted if not _is_private(name)), "")
    is_base = any(name in wanted and not name.startswith("builtins:") for name in found[:1])
    if known not in found and not is_base:
        return False
    return known != _EXIT or _exit_code(first) == _exit_code(second)


def _is_untold_error(first: dict[str, Any], second: dict[str, Any], statement: str | None) -> bool:
    """Whether both raise one of :data:`_USUAL` errors, and the statement does not name the original's."""
    wanted, found = ([str(name).removeprefix("builtins:") for name in o.get("raised") or [""]] for o in (first, second))
    is_told = any(name in (statement or "") for name in wanted if name in _USUAL)
    return statement is not None and not is_told and _USUAL.issuperset([wanted[0], found[0]])


def _is_private(name: str) -> bool:
    return any(part.startswith("_") for part in name.partition(":")[2].split("."))


def _exit_code(outcome: dict[str, Any]) -> int:
    """The exit code that a shell gets: 0 for ``None``, 1 for text."""
    tag, value = (outcome.get("said") or [["c", None]])[0][:2]
    return 0 if value is None else int(value) if tag in ("i", "c") else 1


def fits_simple_stub(recorded: Sequence[RecordedCall]) -> bool:
    """Whether a simple stub has all these outcomes: all are equal, or each call returns one of its arguments."""
    results = [parsed(one.outcome.encode()) for one in recorded]
    said = [[_kind_of_error(found), found.get("printed"), found.get("result")] for found in results]
    if all(equal(said[0], other) for other in said):
        return True
    given = [parsed(one.call.encode()) for one in recorded]
    nodes = [[*call.get("args", ()), *(node for _, node in call.get("kwargs", ()))] for call in given]
    return all(any(equal(node, found[2]) for node in listed) for listed, found in zip(nodes, said, strict=True))


def _kind_of_error(outcome: dict[str, Any]) -> Any:
    """The classes of an exception; one name for all of :data:`_USUAL`, since a statement may name none of them."""
    raised = outcome.get("raised")
    is_usual = isinstance(raised, list) and bool(raised) and str(raised[0]).removeprefix("builtins:") in _USUAL
    return ["usual"] if is_usual else raised


def distinguish_from_stub(recorded: Sequence[RecordedCall], stub: Sequence[str]) -> bool:
    """See :meth:`excise.protocols.Grading.distinguish_from_stub`."""
    if not recorded:
        return False
    mine = [parsed(one.outcome.encode()) for one in recorded]
    theirs = [parsed(outcome.encode()) for outcome in stub]
    try:
        both = zip(mine, theirs, strict=True)
        changed = any(other.get("after") is not None and not _same_after(one, other) for one, other in both)
    except _MALFORMED:
        changed = True
    return changed or not fits_simple_stub(recorded)


def texts_in(outcome: dict[str, Any]) -> frozenset[str]:
    """See :meth:`excise.protocols.Grading.texts_in`."""
    found: set[str] = set()
    left: list[Any] = [outcome.get("result"), outcome.get("after")]
    while left:
        node = left.pop()
        if isinstance(node, list):
            is_text = len(node) == 2 and node[0] == "s" and isinstance(node[1], str)
            found.update([node[1]] if is_text else ())
            left += [] if is_text else node
    return frozenset(found)


def equal(first: Any, second: Any) -> bool:
    """Whether two encoded values are equal; of exceptions, the classes and the first one's attributes."""
    if isinstance(first, list) and isinstance(second, list):
        tags = tuple(map(_tag_of, (first, second)))
        if (found := _equal_of_tags(tags, first, second)) is not None:
            return found
        if tags == ("x", "x"):
            return first[1] == second[1] and _same_attributes(*(node[3:] for node in (first, second)))
        return len(first) == len(second) and all(equal(a, b) for a, b in zip(first, second, strict=True))
    return type(first) is type(second) and bool(first == second)


def _same_attributes(first: list[Any], second: list[Any]) -> bool:
    """Whether an exception has the attributes of another one: a list of pairs, where there are any."""
    known = dict(second[0]) if second else {}
    return all(name in known and equal(value, known[name]) for name, value in (first[0] if first else ()))


def _tag_of(node: list[Any]) -> str:
    """What kind of value an encoded one is; empty for lists of such, and for an attribute: a name and its value."""
    is_attribute = len(node) == 2 and isinstance(node[1], list) and bool(node[1]) and isinstance(node[1][0], str)
    return node[0] if node and isinstance(node[0], str) and not is_attribute else ""


def _equal_of_tags(tags: tuple[str, ...], first: list[Any], second: list[Any]) -> bool | None:
    """:func:`equal` for values whose tags ask for more than to compare their members in order; else ``None``."""
    if tags in (("f", "f"), ("z", "z")):
        return all(same_float(a, b) for a, b in zip(first[1:], second[1:], strict=True))
    if tags == ("seen", "seen"):
        return first[1][0] in second[1] and equal(*map(_without_help, (first, second)))
    if tags[1] == "seen" and tags[0] in _BASES:  # an object of a class of the project, which is based on the original's
        return _BASES[tags[0]] in second[1] and equal(first, second[2])
    if tags == ("io", "io") and _is_help(first) and _is_help(second):
        return _same_text(first[2][1], second[2][1])
    if tags[0] == tags[1] and tags[0] in {"d", "C", "dd", "S", "F", "dv"}:
        return equal(first[1:-1], second[1:-1]) and same_members(first[-1], second[-1])
    return same_members(first[-1], second[-1]) if _MAPPINGS.issuperset(tags) else None


def _is_help(stream: list[Any]) -> bool:
    """Whether an encoded stream holds the help text of a command."""
    text = stream[2] if len(stream) > 2 else None
    return isinstance(text, list) and text[:1] == ["s"] and _HELP.match(str(text[1])) is not None


def _without_help(seen: list[Any]) -> list[Any]:
    """The content of an object; of one of a library for command lines, without what it says to people.

    The content is the encoded items, or what the object is based on and (name, encoded value) of its attributes.
    """
    _, names, *content = seen
    has_attributes = len(content) == 2 and isinstance(content[1], list)
    if not has_attributes or not any(name.partition(":")[0].partition(".")[0] in _COMMAND_LINE for name in names):
        return content
    base, attributes = content
    return [base, [pair for pair in attributes if pair[0] not in _FOR_PEOPLE]]


def same_float(first: str, second: str) -> bool:
    """Whether two floats (as hexadecimal bits) are equal up to :data:`FLOAT_TOLERANCE`; zeros must have equal signs."""
    if first == second:
        return True
    if "nan" in (first, second):
        return False
    a, b = float_of(first), float_of(second)
    return a != 0 and b != 0 and math.isclose(a, b, rel_tol=FLOAT_TOLERANCE, abs_tol=0.0)


def same_members(first: Any, second: Any) -> bool:
    """Whether two lists have equal members in any order."""
    if not isinstance(first, list) or not isinstance(second, list) or len(first) != len(second):
        return False
    rest = list(second)
    for member in first:
        place = next((n for n, other in enumerate(rest) if equal(member, other)), None)
        if place is None:
            return False
        del rest[place]
    return True
