"""Commands of a shell that are gone from a project, and how documents call and name them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

_PROMPT = re.compile(r"\s*[$%]\s+")
"""What a shell prints before a call."""
_COMMENT = re.compile(r"\s*#")
_ALONE = (
    r"(?:^\s*|[|;&]\s*)(?:[A-Z_]{1,40}=\S{0,200}\s+|(?:sudo|env|time|xargs|uvx|uv run|poetry run|pipx run|pdm run)\s+)*"
)
"""Where a shell expects the name of a program."""
_INTERPRETER = r"(?:python|python3|py)\s+-m\s+"


@dataclass(frozen=True, slots=True)
class GoneCommands:
    """The commands that the project no longer has."""

    scripts: tuple[str, ...] = ()
    """Names of scripts; of commands of one that stays, its name and theirs: ``ferry load``."""
    modules: tuple[str, ...] = ()
    """Dotted names of packages that could be run with ``python -m``."""
    packages: frozenset[str] = frozenset()
    """Names of the project's packages: a command of the same name is meant only where it is called one."""
    is_last: bool = False
    """Whether the project has no command any more."""

    def __bool__(self) -> bool:
        return bool(self.scripts or self.modules)

    @property
    def is_project(self) -> bool:
        """Whether a command is named like a package: all that documents say may be about it."""
        return any(_plain(name) in self.packages for name in self.scripts)

    def calls(self, line: str) -> bool:
        """Whether a line of an example calls one of the commands."""
        return bool(self) and _call(self).search(_PROMPT.sub("", line)) is not None

    def words(self) -> tuple[str, ...]:
        """The words that every mention has."""
        return (*self.scripts, *self.modules)

    def mention(self) -> str:
        """The pattern of what names a command in a sentence; it finds nothing if there is none."""
        return _mention(self)

    def left_of(self, lines: Sequence[str], *, is_shell: bool) -> list[str] | None:
        """The lines of an example in a shell without calls of the commands, and without what these print.

        Of an example that may be in another language, only one with prompts, or with nothing but such calls, counts.
        ``None`` if there is no call.
        """
        call = _call(self)
        if not any(map(call.search, lines)):
            return None
        if re.match(r"\s*usage:", next(filter(str.strip, lines), ""), re.IGNORECASE):
            return []
        has_prompts = any(map(_PROMPT.match, lines))
        found: list[str] = []
        is_lost = False
        is_continued = False
        for line in lines:
            is_head = bool(_PROMPT.match(line)) if has_prompts else bool(line.strip()) and not is_continued
            if is_head:
                is_lost = call.search(_PROMPT.sub("", line)) is not None
                while is_lost and found and _COMMENT.match(found[-1]):
                    found.pop()
            is_continued = line.rstrip().endswith("\\")
            if not is_lost or (not has_prompts and not line.strip()):
                found.append(line)
        while found and not found[-1].strip():
            found.pop()
        if not (is_shell or has_prompts) and any(map(str.strip, found)):
            return None
        return found if any(line.strip() and not _COMMENT.match(line) for line in found) else []


NO_COMMANDS = GoneCommands()
"""Nothing that is called from a shell is gone."""


@cache
def _call(commands: GoneCommands) -> re.Pattern[str]:
    names = [re.escape(name) for name in commands.scripts]
    names += [_INTERPRETER + re.escape(name) for name in commands.modules]
    return re.compile(rf"(?:^\s*[$%]\s+|^\s*[Uu]sage:\s+|{_ALONE})(?:{'|'.join(names)})(?=\s|$)")


@cache
def _mention(commands: GoneCommands) -> str:
    parts = [rf"`{_INTERPRETER}{re.escape(name)}(?=[\s`])" for name in commands.modules]
    for name in map(re.escape, commands.scripts):
        parts.append(rf"`{name}\s[^`\n]{{1,200}}`")
        parts.append(rf"`{name}`{{1,2}}\s+(?:command|script|program|executable|tool|utility)\b")
        parts.append(rf"(?<![\w`./-]){name}\s+(?:sub)?command\b")
        parts.append(rf"\b(?:command|script|program|executable|[Rr]un|[Rr]unning|[Ii]nvok(?:e|ing))\s+`{{1,2}}{name}`")
    parts += [rf"`{re.escape(name)}`" for name in commands.scripts if _plain(name) not in commands.packages]
    return "|".join(parts) or "(?!)"


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "_", name).lower()
