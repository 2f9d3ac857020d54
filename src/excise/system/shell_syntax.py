"""Parser of shell scripts: the commands in them, with their words, redirections and standard input.

Parsed by tree-sitter-bash; nothing is run or expanded. Parts that are not valid bash are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

MAX_SCRIPT_CHARS = 200_000
"""Longer scripts are cut."""
MAX_HEREDOCS = 100
"""Largest number of here-documents for which several on one line are supported: parsing time grows with its square."""

_LANGUAGE = Language(tree_sitter_bash.language())
_SUBSTITUTIONS = frozenset({"command_substitution", "process_substitution"})
_EXPANSIONS = frozenset({"simple_expansion", "expansion", "arithmetic_expansion", *_SUBSTITUTIONS})
_COMMANDS = frozenset({"command", "declaration_command", "unset_command"})
_NO_WORDS = frozenset({"variable_assignment", "file_redirect", "herestring_redirect", "heredoc_redirect", "comment"})
_HEREDOC = re.compile(r"<<(-?)[ \t]*(?:'([\w.-]+)'|\"([\w.-]+)\"|\\?([A-Za-z_][\w.-]*))")
_C_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "f": "\f", "v": "\v", "0": "\0"}


@dataclass(frozen=True, slots=True)
class ShellWord:
    """One word of a command, quotes and escapes removed."""

    text: str
    """The text. Variables are kept as written (``$HOME/x``); substitutions (``$(…)``, ``<(…)``) are left out."""
    is_expanded: bool = False
    """Whether bash would replace a part of it: a variable, a substitution, a pattern of file names."""


@dataclass(frozen=True, slots=True)
class Redirection:
    """One redirection of a command to or from a file or a descriptor."""

    operator: str
    """``<``, ``>``, ``>>``, ``>&``, ``&>`` and so on."""
    target: ShellWord
    """The file, or the number of a file descriptor."""

    @property
    def written_file(self) -> str:
        """The file that is written; empty for input, descriptors and names that are not known."""
        to_descriptor = self.operator == ">&" and re.fullmatch(r"\d+-?|-", self.target.text)
        return self.target.text if ">" in self.operator and not to_descriptor else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellCommand:
    """One simple command, at any place in the script: in a pipeline, a loop, a function, a substitution."""

    words: tuple[ShellWord, ...]
    """Its name and arguments, without assignments before the name; empty for a redirection without a command."""
    redirections: tuple[Redirection, ...] = ()
    """Its redirections. Those of a subshell or a block are attributed to the last command in it."""
    stdin: str | None = None
    """The here-document or here-string that is its standard input; ``None`` without one."""


def parse_shell(script: str) -> list[ShellCommand]:
    """Return all simple commands of a script, in order; commands in substitutions follow the one that contains them."""
    text = script[:MAX_SCRIPT_CHARS]
    root = _parse(text)
    if root.has_error and 0 < text.count("<<") <= MAX_HEREDOCS:  # the grammar knows one here-document a line
        root = _parse(_with_here_strings(text))
    return list(_commands(root))


def _parse(text: str) -> Node:
    return Parser(_LANGUAGE).parse(text.encode("utf-8", "replace")).root_node


def _with_here_strings(text: str) -> str:
    """Rewrite every here-document as a here-string, of which a line may have several."""
    done: list[str] = []
    lines = iter(text.split("\n"))
    for line in lines:
        replaced, end = "", 0
        for match in _HEREDOC.finditer(line):
            delimiter = match[2] or match[3] or match[4]
            body = []
            for raw in lines:
                inner = raw.lstrip("\t") if match[1] else raw
                if inner == delimiter:
                    break
                body.append(inner)
            replaced += f"{line[end : match.start()]}<<<{_quoted(chr(10).join(body), is_literal=not match[4])}"
            end = match.end()
        done.append(replaced + line[end:])
    return "\n".join(done)


def _quoted(text: str, *, is_literal: bool) -> str:
    if is_literal:
        return "'" + text.replace("'", "'\\''") + "'"
    return '"' + re.sub(r'(?<!\\)"', r"\"", text) + '"'


def _commands(root: Node) -> Iterator[ShellCommand]:
    """All commands below ``root``, without recursion, since untrusted scripts may be nested to any depth."""
    owned: dict[int, list[Node]] = {}  # command's node id to the redirections of the statement around it
    stack = [root]
    while stack:
        node = stack.pop()
        if node.type == "ERROR" and node != root:
            continue
        if node.type == "redirected_statement":
            redirects = [child for child in node.children if child.type.endswith("_redirect")]
            owner = _last_command(node.child_by_field_name("body"))
            if owner is None:
                yield _command(None, redirects)
            else:
                owned.setdefault(owner.id, []).extend(redirects)
        elif node.type in _COMMANDS:
            yield _command(node, owned.pop(node.id, []))
        stack += reversed(node.children)


def _last_command(node: Node | None) -> Node | None:
    """The last simple command of a statement, ignoring those in substitutions."""
    found = None
    stack = [node] if node is not None else []
    while stack:
        node = stack.pop()
        if node.type in _COMMANDS:
            found = node
        elif node.type not in _SUBSTITUTIONS:
            stack += reversed(node.children)
    return found


def _command(node: Node | None, redirects: list[Node]) -> ShellCommand:
    words: tuple[ShellWord, ...] = ()
    if node is not None:
        is_declaration = node.type != "command"
        words = tuple(
            _word(child)
            for child in node.children
            if (child.is_named or is_declaration) and (child.type not in _NO_WORDS or is_declaration)
        )
        redirects = [*(child for child in node.children if child.type.endswith("_redirect")), *redirects]
    inner = [child for redirect in redirects if redirect.type == "heredoc_redirect" for child in redirect.children]
    files = [child for child in (*redirects, *inner) if child.type == "file_redirect"]
    inputs = [_input(redirect) for redirect in redirects if redirect.type != "file_redirect"]
    return ShellCommand(
        words=words,
        redirections=tuple(_redirection(child) for child in files),
        stdin=inputs[-1] if inputs else None,
    )


def _input(redirect: Node) -> str:
    """The text of a here-document or here-string."""
    if redirect.type == "herestring_redirect":
        return "".join(_word(child).text for child in redirect.named_children)
    body = next((_text(child) for child in redirect.children if child.type == "heredoc_body"), "")
    strips_tabs = any(child.type == "<<-" for child in redirect.children)
    return re.sub(r"(?m)^\t+", "", body) if strips_tabs else body


def _redirection(node: Node) -> Redirection:
    operator = next((child.type for child in node.children if not child.is_named), "")
    target = node.child_by_field_name("destination")
    return Redirection(operator, _word(target) if target is not None else ShellWord(""))


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


def _word(node: Node) -> ShellWord:
    """The word of an argument; ``node`` has any of the grammar's types for arguments."""
    kind, text = node.type, _text(node)
    if kind in _EXPANSIONS:
        return ShellWord("" if kind in _SUBSTITUTIONS else text, is_expanded=True)
    if kind == "raw_string":
        return ShellWord(text[1:-1])
    if kind == "ansi_c_string":
        return ShellWord(re.sub(r"\\(.)", lambda match: _C_ESCAPES.get(match[1], match[1]), text[2:-1]))
    if kind in {"string", "translated_string"}:
        return _string(node)
    if kind in {"concatenation", "command_name"} and node.children:
        parts = [_word(child) for child in node.children]
        return ShellWord("".join(part.text for part in parts), any(part.is_expanded for part in parts))
    plain = re.sub(r"\\(\n|.)", lambda match: "" if match[1] == "\n" else match[1], text)
    return ShellWord(plain, is_expanded=re.search(r"(?<!\\)[*?{}`]", text) is not None)


def _string(node: Node) -> ShellWord:
    """The value of a text in double quotes."""
    data, start = node.text or b"", node.start_byte
    place, parts, is_expanded = data.index(b'"') + 1, [], False
    for child in node.children:
        if child.type in _EXPANSIONS:
            parts.append(_unescaped(data[place : child.start_byte - start]))
            parts.append(_word(child).text)
            place, is_expanded = child.end_byte - start, True
    parts.append(_unescaped(data[place:].removesuffix(b'"')))
    return ShellWord("".join(parts), is_expanded)


def _unescaped(data: bytes) -> str:
    """Part of a text in double quotes, where a backslash escapes few characters."""
    text = data.decode("utf-8", "replace")
    return re.sub(r'\\([\n"\\$`])', lambda match: "" if match[1] == "\n" else match[1], text)
