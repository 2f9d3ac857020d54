"""Runs in the sandbox: reads sources of Rust as far as finding tests needs it: tokens, modules, test functions.

Standard library only; Python 3.8.
"""

import os
import re

_TOKEN = re.compile(
    r"""(?xs)
    //[^\n]*
    | (?:b|c)?r(\#*)".*?"\1
    | [bc]?"(?:\\.|[^"\\])*"
    | b?'(?:\\x[0-9a-fA-F]{2}|\\u\{[^}]*\}|\\.|[^'\\])'
    | '[^\W\d]\w*
    | r\#[^\W\d]\w* | [^\W\d]\w*
    | \d[\w.]*?(?=\.\.|\W|$)
    | /\*
    | \S
    """
)
_OPEN, _CLOSE = {"(": ")", "[": "]", "{": "}"}, frozenset(")]}")
_TO_SEMICOLON = frozenset({"use", "static", "type", "let"})


class Token:
    """A token and where it stands."""

    __slots__ = ("end", "start", "text")

    def __init__(self, text, start, end):
        self.text, self.start, self.end = text, start, end


def tokens(source):
    """The tokens of a file without comments, but with inner documentation (``//!``), which may only begin a module."""
    found, place = [], 0
    while True:
        match = _TOKEN.search(source, place)
        if match is None:
            return found
        text, place = match.group(0), match.end()
        if text == "/*":
            depth = 1
            while depth and place < len(source):
                if source.startswith("/*", place):
                    depth, place = depth + 1, place + 2
                elif source.startswith("*/", place):
                    depth, place = depth - 1, place + 2
                else:
                    place += 1
            if not source.startswith("/*!", match.start()):
                continue
            text = "//!"
        elif text.startswith("//") and not text.startswith("//!"):
            continue
        found.append(Token(text, match.start(), place))


class TestFunction:
    """A function with the attribute ``test``."""

    __slots__ = ("attributes", "modules", "name")

    def __init__(self, name, modules, attributes):
        self.name = name
        self.modules = modules
        self.attributes = attributes

    @property
    def is_ignored(self):
        """Whether it is run only on demand."""
        return any(words[:1] == ["ignore"] for words in self.attributes)

    @property
    def expected_panic(self):
        """``None``, or the text that the message of the expected panic contains, as a literal."""
        for words in self.attributes:
            if words[:1] == ["should_panic"]:
                return next((word for word in words if word.startswith(('"', "r"))), '""')
        return None


class SourceFile:
    """Modules and test functions of one file."""

    def __init__(self, source):
        self.source = source
        self.tests = []
        self.files = []
        """(names of the inline modules around, name, path attribute) of modules in files of their own."""
        self.ends = {(): len(source)}
        """Names of an inline module to the place of its closing brace."""
        self.inner_end = 0
        """Where the inner attributes of the file end."""
        self._tokens = tokens(source)
        self._items(0, ())

    def _items(self, at, modules):
        """Read items until the closing brace of the module; return the place after it."""
        found, attributes, begins = self._tokens, [], True
        while at < len(found):
            text = found[at].text
            if text == "}":
                self.ends[modules] = found[at].start
                return at + 1
            if text.startswith("//!"):
                if begins and not modules:
                    self.inner_end = found[at].end
                at += 1
                continue
            if text == "#":
                inner = at + 1 < len(found) and found[at + 1].text == "!"
                end = self._balanced(at + 1 + inner)
                if inner and begins and not modules:
                    self.inner_end = found[end - 1].end
                if not inner:
                    attributes.append([token.text for token in found[at + 2 : end - 1]])
                at = end
                continue
            begins = False
            at = self._item(at, modules, attributes)
            attributes = []
        return at

    def _item(self, at, modules, attributes):
        """Read one item; return the place after it."""
        found, head = self._tokens, []
        to_semicolon = False
        while at < len(found):
            text = found[at].text
            if text == "mod" and _is_head(head) and at + 2 < len(found):
                name = found[at + 1].text
                if found[at + 2].text == ";":
                    path = next((words[2].strip('"') for words in attributes if words[:2] == ["path", "="]), "")
                    self.files.append((modules, name, path))
                    return at + 3
                return self._items(at + 3, (*modules, name))
            if text == "fn" and at + 1 < len(found) and _is_head(head):
                if any(words and words[-1] == "test" and "(" not in words for words in attributes):
                    self.tests.append(TestFunction(found[at + 1].text, modules, attributes))
            elif (text in _TO_SEMICOLON and _is_head(head)) or (text == "=" and head[:1] == ["const"]):
                to_semicolon = True
            elif text in _OPEN:
                end = self._balanced(at)
                if text == "{" and not to_semicolon:
                    return end
                at = end
                continue
            elif text == ";":
                return at + 1
            elif text == "}":
                return at
            head.append(text)
            at += 1
        return at

    def _balanced(self, at):
        """The place after the bracket that closes the one at ``at``."""
        depth = 0
        while at < len(self._tokens):
            text = self._tokens[at].text
            depth += (text in _OPEN) - (text in _CLOSE)
            at += 1
            if depth == 0:
                break
        return at

    def calls_of(self, names):
        """Tokens that are names of macros among ``names`` where these are called without a path."""
        found = self._tokens
        for at, token in enumerate(found[:-2]):
            if token.text in names and found[at + 1].text == "!" and found[at + 2].text in _OPEN:
                before = found[at - 1].text if at else ""
                if before not in {":", "$", "macro_rules"}:
                    yield token


def _is_head(words):
    """Whether only what may stand before the keyword of an item stands there."""
    plain = [word for word in words if not word.startswith('"')]
    return set(plain) <= {"pub", "unsafe", "async", "extern", "const", "default", "crate"}


def folder_of_modules(path, is_root):
    """Where the modules of a file have theirs."""
    folder, name = os.path.split(path)
    return folder if is_root or name == "mod.rs" else os.path.join(folder, os.path.splitext(name)[0])


def read_text(path):
    """The text of a file; bytes that are no UTF-8 stay what they are."""
    with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
        return file.read()


def module_files(crate_root):
    """Path of a module (a tuple of names) to (file, what it contains) of a crate's modules in files of their own."""
    found, pending = {}, [((), crate_root)]
    while pending:
        names, path = pending.pop()
        if names in found or len(names) > 30:
            continue
        try:
            file = SourceFile(read_text(path))
        except OSError:
            continue
        found[names] = path, file
        base = folder_of_modules(path, not names)
        for around, name, explicit in file.files:
            inside = os.path.join(base, *around)
            if explicit:
                chosen = [os.path.join(inside if around else os.path.dirname(path), explicit)]
            else:
                chosen = [os.path.join(inside, name + ".rs"), os.path.join(inside, name, "mod.rs")]
            there = next((each for each in chosen if os.path.isfile(each)), None)
            if there is not None:
                pending.append(((*names, *around, name), os.path.normpath(there)))
    return found


def split_name(name, files):
    """(file, names within it) of a test that its binary calls ``name``; ``None`` if no file has it."""
    parts = tuple(name.split("::"))
    for size in range(len(parts) - 1, -1, -1):
        if parts[:size] in files:
            return files[parts[:size]][0], parts[size:]
    return None
