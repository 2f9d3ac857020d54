"""The completeness judge: which items of the inventory of the hidden tests a text lacks, and how they are added to it.

The inventory of a task is what its specification gives and a solver cannot do without: where the code has to be, under
which names and signatures, from where it must be importable, and every detail that the hidden tests need
(``Task.needs``) and that is nowhere else. A text is complete if it gives every item. The judge adds what is missing, in
the words of the specification, and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from excise.deleters.code_editors import editor_of
from excise.deleters.deletion_record import KEPT_DEFINITIONS
from excise.deleters.statement.details import is_named, what_is_returned
from excise.deleters.statement.specification import Entry, Specification, specification_of
from excise.types import GivenBy, Need, NeedKind, Task

MIN_LINE = 12
"""Minimum number of characters of a line of code that tells something about the code."""
_LINE_MARKS = " +-><#*|/.,\"'`\ufeff"
"""Characters around a copied line of code: marks of diffs, prompts, comments, quotes, tables and JSON strings."""
_TELLING = re.compile(r"[(\[{=+*/%<>]|\bin\b|\bif\b|\.\w")
"""What a line of code has that does something."""
_LEADING = re.compile(r"^(?:return|yield from|yield|await|assert|raise) ")
_HEADS = re.compile(r"^(?:@|(?:async )?def |class |import |from \S+ import )")


_TEXTS = frozenset({NeedKind.MESSAGE, NeedKind.KEY, NeedKind.TEXT})
_CODE_SPAN = re.compile(r"`+([^`\n]+)`")


@dataclass(frozen=True, slots=True, kw_only=True)
class InventoryItem:
    """One thing that a solver must know."""

    label: str
    """Kind and content: ``file src/a.py``, ``signature def f(x)``, ``import …``, or a label of ``Task.needs``."""
    line: str
    """What the judge adds where it is missing: one line, without a list mark."""
    is_given: Callable[[str], bool]
    """Whether a text gives it."""


def inventory(task: Task) -> list[InventoryItem]:
    """The items that the specification of a task gives, in its order."""
    parts = specification_of(task)
    return [*_places(task, parts), *_imports(task, parts), *_details(task, parts)]


def missing_items(task: Task, text: str) -> list[InventoryItem]:
    """The items of the inventory that a text lacks."""
    return [item for item in inventory(task) if not item.is_given(text)]


def completed(task: Task, text: str) -> tuple[str, tuple[str, ...]]:
    """The text with a last section of what it lacked, and the labels of what was added; unchanged if complete."""
    added: dict[str, list[str]] = {}
    whole = text
    for item in inventory(task):
        if not item.is_given(whole):
            added.setdefault(item.line, []).append(item.label)
            whole = "\n".join([text.rstrip(), "", *(f"- {line}" for line in added)])
    if not added:
        return text, ()
    lines = "\n".join(f"- {line}" for line in added)
    labels = tuple(label for found in added.values() for label in found)
    return f"{text.rstrip()}\n\n## Details\n\n{lines}\n", labels


def _places(task: Task, parts: Specification) -> Iterator[InventoryItem]:
    """Files and signatures; of statements that cannot be taken apart, those of the interface."""
    entries = [entry for entry in parts.entries if entry.name or not entry.head]
    if not entries:
        for line in task.interface.splitlines():
            path, _, signature = line.partition(": ")
            entries.append(Entry(path=path, head="" if signature == path else signature))
    for entry in entries:
        where = f"`{entry.path}`"
        file = InventoryItem(
            label=f"file {entry.path}", line=f"The code belongs into {where}.", is_given=_names_file(task, entry.path)
        )
        if not entry.head:
            yield file
            continue
        inside = f" of `{entry.owner}`" if entry.owner else ""
        kept = task.deleter in KEPT_DEFINITIONS
        yield InventoryItem(
            label=f"signature {entry.signature}" if not kept else f"name {entry.name or entry.signature}",
            line=f"`{_one_line(entry.signature)}`{inside} in {where}.",
            is_given=_names_entry(entry, with_signature=not kept),
        )
        yield file


def _names_file(task: Task, path: str, names: Sequence[str] = ()) -> Callable[[str], bool]:
    """Whether a text names a file, by its path or as a module; of a package, also by one of its ``names``."""
    module = re.escape(editor_of(task.language).words.module_of(path))
    end = r"(?![\w/])"
    if path.endswith("__init__.py"):  # not the beginning of the name of another module
        listed = "|".join(map(re.escape, names))
        end = rf"(?:(?![\w/])(?!\.\w)|\.(?:{listed})\b)" if listed else r"(?![\w/])(?!\.\w)"
    pattern = re.compile(rf"(?<![\w./]){module}{end}")
    short = path.removeprefix("src/").removeprefix("lib/")
    return lambda text: short in text or pattern.search(text) is not None


def _names_entry(entry: Entry, *, with_signature: bool) -> Callable[[str], bool]:
    """Whether a text has the name (with its class), and the parameters as the specification has them."""
    name, owner = entry.name.rpartition(".")[2], entry.name.rpartition(".")[0].rpartition(".")[2]
    core = re.sub(r"^(?:async )?(?:def|class) ", "", entry.signature) if "`" not in entry.signature else name
    wanted = [core if with_signature else name or core, owner]

    def is_given(text: str) -> bool:
        flat = " ".join(text.split())
        return all(
            re.search(rf"(?<!\w){re.escape(_one_line(word))}(?!\w)", flat) is not None for word in wanted if word
        )

    return is_given


def _imports(task: Task, parts: Specification) -> Iterator[InventoryItem]:
    for sentence in parts.offered:
        path = sentence[1:].partition("`")[0]
        names = re.findall(r"`([^`]+)`", sentence.partition("` offered ")[2].partition(" as well")[0])

        def is_given(text: str, path: str = path, names: tuple[str, ...] = tuple(names)) -> bool:
            return _names_file(task, path, names)(text) and all(
                re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) for name in names
            )

        yield InventoryItem(label=f"import {path}: {', '.join(names)}", line=sentence, is_given=is_given)


def _details(task: Task, parts: Specification) -> Iterator[InventoryItem]:
    """The details that hidden tests need and that only the statement gives."""
    for label, given in task.needs.items():
        if given in {GivenBy.STATEMENT, GivenBy.DETAILS}:
            need = _need_of(label)
            if need is not None:
                yield InventoryItem(label=label, line=_line_of(need, parts), is_given=_gives(need))


def _need_of(label: str) -> Need | None:
    kind, _, word = label.partition(" ")
    return Need(kind=NeedKind(kind), word=word, owner="", tests=()) if kind in set(NeedKind) and word else None


def _gives(need: Need) -> Callable[[str], bool]:
    if need.kind is NeedKind.RESULT:
        name, _, kind = need.word.rpartition(" ")
        if kind == "bool":
            return lambda text: re.search(r"(?i)\b(?:true|false|bool|whether)\b", text) is not None
        if kind.endswith("{}"):
            return lambda text: kind in text
        told = (
            rf"(?i)\breturns?\b[^\n]*\b{re.escape(kind)}\b|\b{re.escape(name)}\([^\n]*\) -> [^\n]*\b{re.escape(kind)}\b"
        )
        return lambda text: re.search(told, text) is not None
    if need.kind in _TEXTS:  # it may be a part of a text that is shown with marks for what is filled in
        return lambda text: is_named(need, text) or any(need.word in span for span in _CODE_SPAN.findall(text))
    return lambda text: is_named(need, text)


def _line_of(need: Need, parts: Specification) -> str:
    """The line of the specification that gives a detail, with the definition that it stands below; or a plain one."""
    given = _gives(need)
    for entry in parts.entries:
        for line in [*entry.details, *entry.words]:
            if line.strip() and given(line):
                where = f"`{entry.name}`" if entry.name else f"`{entry.path}`"
                return f"{where}: {_one_line(line)}"
    for line in (*parts.examples, *parts.excerpts):
        if given(line):
            return f"`{_one_line(line)}`" if "`" not in line else _one_line(line)
    if need.kind is NeedKind.RESULT:
        name, _, kind = need.word.rpartition(" ")
        return f"`{name}` returns {what_is_returned(kind)}."
    shown = repr(need.word) if need.kind in _TEXTS else need.word
    mark = "``" if "`" in shown else "`"
    return f"{need.kind.capitalize()} that tests need: {mark}{shown}{mark}."


def _one_line(text: str) -> str:
    return " ".join(text.split())


# --------------------------------------------------------------------------------- the removed code
def normal_lines(text: str) -> list[str]:
    """The text's non-blank lines with :data:`_LINE_MARKS` stripped and runs of white space replaced by one space."""
    return [line for raw in text.splitlines() if (line := " ".join(raw.split()).strip(_LINE_MARKS))]


def told_code(task: Task, text: str) -> list[str]:
    """The lines of the removed code that do something and stand in a text, though the specification has them not.

    Lines are compared without indentation, marks around them, and a leading ``return`` or the like.
    """
    said, specified = _flat(text), _flat(task.problem_statement)
    added = (line[1:] for line in task.patch.splitlines() if line.startswith("+") and not line.startswith("+++"))
    found = []
    for line in normal_lines("\n".join(added)):
        code = _LEADING.sub("", line)
        telling = len(code) >= MIN_LINE and _TELLING.search(code) and not _HEADS.match(code)
        if telling and code in said and code not in specified:
            found.append(line)
    return found


def _flat(text: str) -> str:
    return "\n".join(normal_lines(text))
