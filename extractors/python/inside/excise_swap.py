"""Replaces the bodies of functions in a process that has imported them. Standard library only.

A function whose body never ran while the project was imported is the same object as one that was compiled with another
body: only its code differs. An edit that changes nothing but such bodies therefore needs no fresh import. What is
checked here: header and place of the function are unchanged, its code is what its source compiles to (nothing has
transformed it), and no part of it has run. Imports that go are taken out of the module (``excise_imports.py``). All
other edits are refused with :class:`NeedsImport`.
"""

import __future__

import ast
import bisect
import collections
import difflib
import gc
import os
import sys
import threading
import types
from importlib.util import decode_source

from excise_imports import (
    FUNCTIONS,
    Imports,
    LostImports,
    NeedsImport,
    Project,
    blocks_in,
    first_line_of,
    imports_in,
    real,
)

BLOCKS = (ast.If, ast.Try, ast.ExceptHandler, ast.With, ast.For, ast.While)
"""Statements of a module or a class in which functions are defined, without a scope of their own."""
PLAIN_DECORATORS = frozenset(
    ["property", "staticmethod", "classmethod", "setter", "getter", "deleter", "abstractmethod"]
)
"""Decorators that do not look at the code of a function."""
COMPILERS = frozenset(["numba", "torch", "triton", "jax", "cython"])
"""Modules whose decorators compile a function when it is defined."""
GENERATOR_FLAGS = 0x20 | 0x80 | 0x100 | 0x200
"""Flags of code: generator, coroutine, iterable coroutine, asynchronous generator."""

WRAPPED = {classmethod: "__func__", staticmethod: "__func__", property: "fget"}
"""What the plain decorators make, and the names of their attributes for the function."""
NOT_STARTED = {types.GeneratorType: "gi_code", types.CoroutineType: "cr_code", types.AsyncGeneratorType: "ag_code"}
"""Types of objects that hold code which has perhaps not started, and the names of their attributes for it."""
HAS_DOCSTRING = 0x4000000
"""Flag of code whose first constant is a docstring, from Python 3.14 on."""


class Executed:
    """Notes which code runs, from :meth:`start` to :meth:`stop`, as keys of :func:`key_of`."""

    TOOL = 4

    def __init__(self):
        self.keys = set()

    def start(self):
        """Begin to note."""
        if sys.version_info >= (3, 12):
            sys.monitoring.use_tool_id(self.TOOL, "excise")
            sys.monitoring.register_callback(self.TOOL, sys.monitoring.events.PY_START, self.note_code)
            sys.monitoring.set_events(self.TOOL, sys.monitoring.events.PY_START)
        else:
            threading.setprofile(self.note_frame)
            sys.setprofile(self.note_frame)

    def note_code(self, code, offset):
        """Note code that starts, once."""
        self.keys.add(key_of(code))
        return sys.monitoring.DISABLE

    def note_frame(self, frame, event, argument):
        """Note the code of a frame that starts."""
        if event == "call":
            self.keys.add(key_of(frame.f_code))

    def stop(self):
        """Stop, and note the code of generators that have not started. Raises ``NeedsImport`` if something else has
        taken our place."""
        if sys.version_info >= (3, 12):
            ours = sys.monitoring.get_tool(self.TOOL) == "excise"
            if ours:
                sys.monitoring.set_events(self.TOOL, 0)
                sys.monitoring.free_tool_id(self.TOOL)
        else:
            ours = sys.getprofile() == self.note_frame
            sys.setprofile(None)
            threading.setprofile(None)
        if not ours:
            raise NeedsImport("the project watches what runs, too")
        for made in gc.get_objects():
            name = NOT_STARTED.get(type(made))  # `isinstance` would ask proxies for their class
            if name is not None:
                self.keys.add(key_of(getattr(made, name)))


def key_of(code):
    """What identifies code: file, first line and name."""
    return real(code.co_filename), code.co_firstlineno, code.co_name


class LoadedCode:
    """The functions of a project that this process has imported, with the sources that they were compiled from.

    ``executed`` are the keys of the code that has run. All sources are read when this is made.
    """

    def __init__(self, root, executed):
        self.executed = executed
        self.loaded = {file for file, _, _ in executed if file.startswith(root + "/")}
        self.sources = {path: read(path) for path in self.loaded if os.path.isfile(path)}
        self.project = Project(self.sources, executed)
        self.functions, self.wrappers = {}, {}
        for made in gc.get_objects():
            if type(made) is types.FunctionType and real(made.__code__.co_filename) in self.sources:
                self.functions.setdefault(key_of(made.__code__), []).append(made)
            elif type(made) in WRAPPED:
                self.wrappers.setdefault(id(getattr(made, WRAPPED[type(made)])), []).append(made)
        self.definitions = {}
        self.doctest_names = {}
        """Files with examples in docstrings that are tests, and the names that each of these tests sees."""

    def prepare(self, path):
        """Parse the source that an imported file had, and all files once its imports change."""
        if path in self.sources and path not in self.definitions:
            try:
                self.definitions[path] = Definitions(decode_source(self.sources[path]))
            except Exception:  # refused later, by a process that may end
                self.definitions[path] = None
        definitions = self.definitions.get(path)
        is_open = definitions is not None and not self.project.is_parsed
        if is_open and os.path.isfile(path) and definitions.may_lose_imports(read(path)):
            self.project.parse()

    def adapt(self, path):
        """Make the functions of a file those that a fresh import of its present content would make."""
        if not os.path.isfile(path) or not path.endswith(".py"):
            raise NeedsImport("%s is no module any more, or was none" % path)
        if path not in self.loaded:
            return  # whoever imports it reads the present content
        source = read(path)
        if self.sources.get(path) == source:
            return
        self.prepare(path)
        definitions = self.definitions.get(path)
        if definitions is None:
            raise NeedsImport("%s cannot be parsed" % path)
        for change in definitions.changes(decode_source(source)):
            if isinstance(change, LostImports):
                change.remove_names(path, self.project, self.doctest_names.get(path, ()))
            else:
                self.replace(path, change)

    def replace(self, path, change):
        """Give the functions of a changed definition their new code."""
        if (path, change.first, change.name) in self.executed:
            raise NeedsImport("%s has run" % change.name)
        old, new = change.codes(path)
        if (old.co_flags ^ new.co_flags) & GENERATOR_FLAGS:
            module = self.project.modules.get(path)
            if module is None or change.old.decorator_list or isinstance(change.old, ast.AsyncFunctionDef):
                raise NeedsImport("%s becomes another kind of function" % change.name)
            self.project.require_not_seen(path, module, change.owners, change.name)
        functions = self.functions.get((path, change.first, change.name), ())
        if not functions:
            raise NeedsImport("nothing is known of %s" % change.name)
        if docstring_of(old) != docstring_of(new) and self.may_show_docstring(path, change, functions):
            raise NeedsImport("the docstring of %s may have been read" % change.name)
        if not change.is_plain() and COMPILERS & set(sys.modules):
            raise NeedsImport("a decorator may have compiled %s" % change.name)
        for function in functions:
            if function.__code__ != old:
                raise NeedsImport("%s is not what its source says" % change.name)
        for function in functions:
            for holder in [function, *self.wrappers.get(id(function), ())]:  # a property has a copy of the docstring
                if holder.__doc__ == docstring_of(old) != docstring_of(new):
                    holder.__doc__ = docstring_of(new)
            function.__code__ = new

    def may_show_docstring(self, path, change, functions):
        """Whether something else than the functions and their :data:`WRAPPED` kinds may have their docstring."""
        if path in self.doctest_names:
            return True
        names = {name_of(decorator) for decorator in change.old.decorator_list}
        wrapped = all(id(function) in self.wrappers for function in functions)
        return bool(names) and not (wrapped and names <= {kind.__name__ for kind in WRAPPED})


class Definitions:
    """The functions that the statements of a module and of its classes define, by the lines of one text."""

    def __init__(self, text):
        self.lines = lines_of(text)
        tree = ast.parse(text)
        self.module = Surroundings(tree)
        blocks = [(first, last, imports, ()) for first, last, imports in blocks_in(tree, len(self.lines))]
        self.imports = ["".join(self.lines[first - 1 : last]).encode() for first, last, _, _ in blocks]
        self.found = sorted([*functions_in(tree, ()), *blocks], key=lambda entry: entry[0])

    def may_lose_imports(self, source):
        """Whether some of the imports are not in a new source as they were."""
        return not all(block in source for block in self.imports)

    def changes(self, text):
        """The changed definitions of a new text. Raises :class:`NeedsImport` if anything else has changed."""
        lines = lines_of(text)
        moved, grown = 0, {}
        for i1, i2, j1, j2 in differences(self.lines, lines):
            place = self.place_of(i1, i2)
            if place is None:
                raise NeedsImport("line %d is in no function, and no import" % (i1 + 1))
            before = grown.setdefault(place, [moved, 0])
            before[1] += (j2 - j1) - (i2 - i1)
            moved += (j2 - j1) - (i2 - i1)
        for place, (shift, more) in grown.items():
            first, last, node, owners = self.found[place]
            snippet = lines[first - 1 + shift : last + shift + more]
            if isinstance(node, Imports):
                yield LostImports(node, imports_in(snippet))
                continue
            yield Change(node, owners, first, parsed(snippet, first + shift), self.module)

    def place_of(self, i1, i2):
        """Index of the definition, or of the imports, with the changed lines from ``i1`` to before ``i2``.

        Both are counted from 0.
        """
        for place, (first, last, _, _) in enumerate(self.found):
            if first - 1 <= i1 and i2 <= last and (i1 < i2 or i1 > first - 1):
                return place
        return None


class Surroundings:
    """What the code of a function depends on outside it: ``__future__`` imports, imported names, classes around it."""

    def __init__(self, tree):
        self.flags, names = 0, set()
        for node in statements_of(tree):
            if isinstance(node, ast.ImportFrom) and node.module == "__future__":
                found = (getattr(__future__, alias.name) for alias in node.names)
                for feature in found:  # the compiler ignores those that have become the rule
                    if (feature.getMandatoryRelease() or (4,)) > sys.version_info:
                        self.flags |= feature.compiler_flag
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                names |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names} - {"*"}
        aliases = [ast.alias(name=name, asname=None) for name in sorted(names)]
        imports = ast.Module(body=[ast.Import(names=aliases)] if aliases else [], type_ignores=[])
        self.imports = ast.fix_missing_locations(imports).body  # calls of what they bind are compiled otherwise

    def compile(self, node, owners, path):
        """The code of a function that is defined in these classes."""
        statement = node
        for owner in reversed(owners):
            parts = {"bases": [], "keywords": [], "decorator_list": [], "type_params": []}
            kept = {name: value for name, value in parts.items() if name in ast.ClassDef._fields}
            statement = ast.copy_location(ast.ClassDef(name=owner.name, body=[statement], **kept), node)
        module = ast.Module(body=[*self.imports, statement], type_ignores=[])  # all of which has its places already
        code = compile(module, path, "exec", flags=self.flags, dont_inherit=True)
        for name in [owner.name for owner in owners] + [node.name]:
            code = next((c for c in code.co_consts if isinstance(c, types.CodeType) and c.co_name == name), None)
            if code is None:
                raise NeedsImport("%s is compiled in a way of its own" % node.name)
        return code


class Change:
    """One definition with an old and a new body."""

    def __init__(self, old, owners, first, new, module):
        self.old, self.new, self.owners, self.first, self.module = old, new, owners, first, module
        self.name = old.name
        if header(old) != header(new):
            raise NeedsImport("the header of %s has changed" % self.name)

    def codes(self, path):
        """The codes that the old and the new source compile to, with the same free variables."""
        old = self.module.compile(self.old, self.owners, path)
        new = self.module.compile(self.new, self.owners, path)
        if new.co_freevars != old.co_freevars == ("__class__",):
            needed = ast.parse("if 0: __class__").body  # a method's `super()` is gone
            ending = self.new.body[-1]
            self.new.body += [ast.copy_location(node, ending) for node in needed]
            ast.fix_missing_locations(self.new)
            new = self.module.compile(self.new, self.owners, path)
        if new.co_freevars != old.co_freevars:
            raise NeedsImport("%s needs other variables of its class" % self.name)
        return old, new

    def is_plain(self):
        """Whether its decorators, if any, do not look at its code."""
        return all(name_of(decorator) in PLAIN_DECORATORS for decorator in self.old.decorator_list)


def docstring_of(code):
    """The docstring of a function that is made from this code."""
    if not code.co_consts or (sys.version_info >= (3, 14) and not code.co_flags & HAS_DOCSTRING):
        return None
    return code.co_consts[0] if isinstance(code.co_consts[0], str) else None


def read(path):
    """The content of a file."""
    with open(path, "rb") as file:
        return file.read()


def statements_of(node):
    """The statements of a module, with those in its blocks."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        if isinstance(child, BLOCKS):
            yield from statements_of(child)


def functions_in(node, owners):
    """First line, last line, node and surrounding classes of each function below ``node`` that is in no other one."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, FUNCTIONS):
            yield first_line_of(child), child.end_lineno, child, owners
        elif isinstance(child, ast.ClassDef):
            yield from functions_in(child, (*owners, child))
        elif isinstance(child, BLOCKS):
            yield from functions_in(child, owners)


def lines_of(text):
    """The lines of a source with their ends, as Python counts them: form feeds and the like end none."""
    return text.replace("\n", "\n\0").split("\0") if "\0" not in text else [text]


def differences(old, new):
    """Differing ranges of lines ``(i1, i2, j1, j2)``, in order."""
    start, shorter = 0, min(len(old), len(new))
    while start < shorter and old[start] == new[start]:
        start += 1
    end = 0
    while end < shorter - start and old[-1 - end] == new[-1 - end]:
        end += 1
    old, new = old[start : len(old) - end], new[start : len(new) - end]
    anchors = anchors_of(old, new)
    if not anchors:
        matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
        found = [codes[1:] for codes in matcher.get_opcodes() if codes[0] != "equal"]
        yield from ((start + i1, start + i2, start + j1, start + j2) for i1, i2, j1, j2 in found)
        return
    i, j = 0, 0
    for next_i, next_j in [*anchors, (len(old), len(new))]:
        for i1, i2, j1, j2 in differences(old[i:next_i], new[j:next_j]) if (i, j) != (next_i, next_j) else ():
            yield start + i + i1, start + i + i2, start + j + j1, start + j + j2
        i, j = next_i + 1, next_j + 1


def anchors_of(old, new):
    """Pairs of places, as many as ascend, of equal lines that both texts have once."""
    counts, others = collections.Counter(old), collections.Counter(new)
    places = {line: place for place, line in enumerate(new)}
    pairs = [(i, places[line]) for i, line in enumerate(old) if counts[line] == others[line] == 1]
    ends, before = [], {}  # the longest ascending sequence: ends[n] is the lowest last place of one of n + 1
    for i, j in pairs:
        length = bisect.bisect_left(ends, (j,))
        before[i, j] = ends[length - 1][::-1] if length else None
        ends[length : length + 1] = [(j, i)]
    found, pair = [], ends[-1][::-1] if ends else None
    while pair is not None:
        found.append(pair)
        pair = before[pair]
    return found[::-1]


def parsed(lines, first):
    """The only function in some lines, the first of which has the number ``first``."""
    indented = lines[:1] and lines[0][:1] in (" ", "\t")
    if indented and first < 2:
        raise NeedsImport("the first line is indented")
    text = "\n" * (first - 2) + "if 1:\n" + "".join(lines) if indented else "\n" * (first - 1) + "".join(lines)
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError):
        raise NeedsImport("a changed function cannot be parsed alone") from None
    if indented and len(body) == 1 and not body[0].orelse:
        body = body[0].body
    if len(body) != 1 or not isinstance(body[0], FUNCTIONS):
        raise NeedsImport("more than a function has changed")
    return body[0]


def header(node):
    """Everything of a function but its body, as a text."""
    fields = {name: value for name, value in ast.iter_fields(node) if name != "type_comment"}
    return ast.dump(type(node)(**dict(fields, body=[])))


def name_of(decorator):
    """Last part of a decorator's name; empty if it is called."""
    if isinstance(decorator, ast.Attribute):
        return decorator.attr
    return decorator.id if isinstance(decorator, ast.Name) else ""
