"""Imports of a module that an edit takes away, in a process that has imported it. Standard library only.

A name that only an import bound can be taken out of a module again, where a fresh import of the project would differ in
nothing else. What is checked here: what was imported is imported before the module in any case, or is a module of
Python's library; nothing else binds the name; and no code that runs while the project is imported uses it or looks at
all names, in the module or in another one. All other edits are refused with :class:`NeedsImport`.
"""

import abc
import ast
import contextlib
import importlib.util
import os
import re
import sys
import types

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
INTROSPECTION = frozenset(
    ["globals", "locals", "vars", "dir", "exec", "eval", "__dict__", "modules", "getmembers", "getmembers_static",
     "create_autospec", "get_type_hints"]
)  # fmt: skip
"""Names of what shows all names of a module, or all members of a class, to code that runs when it is imported."""
OWN_NAMES = frozenset(["globals", "locals"])
"""Those of them that show a module no names but its own."""
_ACTING = {"readline", "rlcompleter", "this", "antigravity", "turtle", "tkinter", "site"}
LIBRARY = (frozenset(getattr(sys, "stdlib_module_names", ())) | {"collections.abc", "os.path"}) - _ACTING
"""Names of modules of Python's library whose import changes nothing but ``sys.modules``; few before Python 3.10."""
SOURCES = re.compile(rb"\b(?:getsource|getsourcelines|findsource|co_firstlineno)\b")
LINES = re.compile(rb"\b(?:currentframe|tb_lineno|f_lineno|extract_stack|inspect\.stack)\b")
"""Words of code that asks for sources of any code, and for line numbers of its own: the numbers below a lost import are
not changed."""
PLAIN_TYPES = (type, abc.ABCMeta)
"""Types of classes that do not look at methods when a class is made."""
PLAIN_CALLS = frozenset(
    ["re", "collections", "typing", "enum", "dataclasses", "operator", "string", "fractions", "namedtuple",
     "NamedTuple", "TypeVar", "ParamSpec", "NewType", "Enum", "dataclass", "field", "wraps", "lru_cache",
     "cache", "total_ordering", "contextmanager", "Decimal", "property", "staticmethod", "classmethod",
     "abstractmethod", "overload", "object", "type", "super", "str", "bytes", "int", "float", "bool",
     "complex", "tuple", "list", "dict", "set", "frozenset", "range", "len", "ord", "chr", "reversed", "zip",
     "enumerate", "isinstance", "functools.wraps", "functools.cache", "functools.lru_cache",
     "functools.total_ordering", "functools.cached_property", "contextlib.contextmanager"]
)  # fmt: skip
"""Names of what has no effect when it is called, and of modules that only have such functions."""
STAR = "*"
GLOBAL, WORD = re.compile(rb"\bglobal[ \t]+([^;#\n]+)"), re.compile(rb"\w+")


class NeedsImport(Exception):
    """Raised if an edit can only be seen by a process that imports the project anew."""


class Imports:
    """Consecutive imports among the statements of a module.

    Conditions for type checkers are among them; what these would bind does not count.
    """

    def __init__(self, nodes):
        self.bound, self.imported = {}, set()
        for level, whole, part, name in imports_of(nodes):
            self.imported.add((level, whole))
            self.bound.pop(name, None)  # the last one counts, as in the module
            self.bound[name] = level, whole, part


class LostImports:
    """Imports with an old and a new text."""

    def __init__(self, old, new):
        if not (new.bound.items() <= old.bound.items() and new.imported <= old.imported):
            raise NeedsImport("other imports have come")
        if list(new.bound) != [name for name in old.bound if name in new.bound]:
            raise NeedsImport("imports have moved")
        self.names = {name: source for name, source in old.bound.items() if name not in new.bound}
        self.gone = old.imported - new.imported

    def remove_names(self, path, project, copies):
        """Take the names out of the module of a file of a :class:`Project`.

        ``copies`` are the names that tests in its docstrings see: each test has a dictionary of its own.
        """
        module = project.modules.get(path)
        if module is None:
            raise NeedsImport("%s is imported twice, or hidden" % path)
        if LINES.search(project.sources[path]) or project.asks_for_sources():
            raise NeedsImport("the project asks for line numbers")
        gone = set()
        for level, whole in sorted(self.gone):
            if level or whole not in LIBRARY or file_of(sys.modules.get(whole)) in project.sources:
                gone.add(absolute_name(module, level, whole))
        for name in sorted(gone):
            if not project.is_imported_anyway(name, gone, module, path):
                project.require_imported(name, module, path)
        for name, (_, whole, part) in self.names.items():
            found = vars(module).get(name, module)
            if found is module or name == STAR or (part and isinstance(found, types.ModuleType)):
                raise NeedsImport("%s is more than a name" % name)
            if not part and whole not in LIBRARY:
                raise NeedsImport("%s is imported as a part of another one" % whole)
            project.require_unused(path, module, name, found)
        for names in (vars(module), *copies):
            for name in self.names:
                names.pop(name, None)


class Project:
    """The imported files of a project, with what each of them does when it is imported.

    ``sources`` are their contents, ``executed`` the code that has run, as :func:`excise_swap.key_of` has it. They are
    parsed when the first import is lost.
    """

    def __init__(self, sources, executed):
        self.sources, self.executed, self.modules, self._at_import = sources, executed, {}, {}
        self._asks_for_sources = None
        for module in list(sys.modules.values()):
            path = file_of(module)
            if path in sources and self.modules.setdefault(path, module) is not module:
                self.modules[path] = None  # it is there twice

    @property
    def is_parsed(self):
        """Whether :meth:`parse` has been called."""
        return len(self._at_import) == len(self.sources)

    def parse(self):
        """Parse and search all files, where all runs profit from it; what cannot be parsed is refused later."""
        self.asks_for_sources()
        for path in self.sources:
            with contextlib.suppress(NeedsImport):
                self.at_import(path)

    def asks_for_sources(self):
        """Whether a file of the project asks for the source of code."""
        if self._asks_for_sources is None:
            self._asks_for_sources = any(map(SOURCES.search, self.sources.values()))
        return self._asks_for_sources

    def at_import(self, path):
        """What a file does when it is imported. Raises ``NeedsImport`` if it cannot be parsed."""
        if path not in self._at_import:
            try:
                self._at_import[path] = ImportTimeCode(path, self.sources[path], self.executed)
            except (SyntaxError, ValueError, RecursionError):
                self._at_import[path] = None
        if self._at_import[path] is None:
            raise NeedsImport("%s cannot be parsed" % path)
        return self._at_import[path]

    def is_imported_anyway(self, name, gone, module, path):
        """Whether a module is imported with the package of another one, whose file loses imports of ``gone``, and when
        that is makes no difference: it needs no other module of the project, and changes none.
        """
        if file_of(sys.modules.get(name)) not in self.sources or not self.is_quiet(name):
            return False
        package = module.__name__.partition(".")[0]
        left, seen = [package], {package}
        while left and name not in seen:
            around = sys.modules.get(left.pop())
            file = file_of(around)
            if file not in self.sources:
                continue
            for level, whole, part, _ in self.present_imports(file):
                source = absolute_name(around, level, whole)
                for found in {source, "%s.%s" % (source, part)} - seen:
                    is_part = found != source and is_submodule(source, part)
                    if (found == source or is_part) and not (file == path and found in gone):
                        seen.add(found)
                        left.append(found)
        return name in seen

    def present_imports(self, file):
        """What the present content of a file imports in any case when it is imported."""
        with open(file, "rb") as present:
            content = present.read()
        if content == self.sources[file]:
            return self.at_import(file).always_imported
        return always_imported(ast.parse(content))

    def is_quiet(self, name):
        """Whether the import of a module runs nothing but its own statements and plain code of Python's library."""
        module = sys.modules[name]
        if hasattr(module, "__path__"):
            return False
        there, short = self.at_import(file_of(module)), name.rpartition(".")[2]
        if (
            not there.is_quiet
            or there.sees_all
            or not all(n == 0 and each in LIBRARY for n, each, _, _ in there.imports)
        ):
            return False
        files = [self.at_import(file) for file in self.sources]  # who may see whether it is there already
        return not any(short in each.attributes or short in each.texts or name in each.texts for each in files)

    def require_imported(self, name, module, path):
        """Raise ``NeedsImport`` unless a package around a module imports the module ``name``, and not through others.

        A module is moved to the end of ``sys.modules`` when its import ends. So what was imported before ``name`` there
        has not imported it, unless its own import ended later.
        """
        ended = {each: place for place, each in enumerate(sys.modules)}
        package = module.__name__.rpartition(".")[0]
        while package:
            around = sys.modules.get(package)
            file = file_of(around)
            if file in self.sources and file != path and os.path.isfile(file):
                for level, whole, part, _ in self.present_imports(file):
                    source = absolute_name(around, level, whole)
                    found = "%s.%s" % (source, part)
                    if name in (source, found) or source.startswith(name + "."):
                        return
                    if any(ended.get(each, -1) > ended.get(name, -1) for each in (source, found) if each != package):
                        raise NeedsImport("%s may be imported earlier" % name)
            package = package.rpartition(".")[0]
        raise NeedsImport("%s may be imported here only" % name)

    def require_unused(self, path, module, name, value):
        """Raise ``NeedsImport`` if code that runs at import may use a name of a module, or something else binds it."""
        own = self.at_import(path)
        if name in own.names or name in own.texts | own.listed or own.sees_all or own.sets_globals:
            raise NeedsImport("the module may use %s when it is imported" % name)
        stars = (absolute_name(module, *each[:2]) for each in own.imports if each[2] == STAR)
        by_star = any(each not in sys.modules or name in exported(sys.modules[each]) for each in stars)
        if name not in own.bound_once or name in own.declared_global or by_star:
            raise NeedsImport("more than one import binds %s" % name)
        word = name.encode()
        for file, source in self.sources.items():
            if file != path:
                if self.at_import(file).sees_others:
                    self.require_not_looked_at(file, module)
                if word in source or b"*" in source:
                    self.require_not_taken(file, module, name, value)

    def require_not_looked_at(self, file, module):
        """Raise ``NeedsImport`` if another file may look at all names of a module when it is imported."""
        there, taker = self.at_import(file), self.modules.get(file)
        if there.sees_all:
            for level, whole, part, _ in there.imports:
                source = absolute_name(taker, level, whole) if taker else whole
                if module.__name__ in (source, "%s.%s" % (source, part)) or module.__name__.startswith(source + "."):
                    raise NeedsImport("%s may look at %s" % (file, module.__name__))

    def require_not_seen(self, path, module, owners, name):
        """Raise ``NeedsImport`` if code that runs at import may look at a function, or at a method of classes.

        ``owners`` are the statements of these classes, ``name`` is the function's.
        """
        if any(each.decorator_list or each.keywords for each in owners):
            raise NeedsImport("something may have seen %s when it was defined" % name)
        holder = module
        if any(each.name in self.at_import(path).names for each in owners):
            raise NeedsImport("something may have seen the class of %s" % name)
        for each in owners:
            holder = vars(holder).get(each.name)
            kinds = (vars(base) for base in getattr(holder, "__mro__", ())[:-1])
            if type(holder) not in PLAIN_TYPES or any("__init_subclass__" in kind for kind in kinds):
                raise NeedsImport("something may have seen %s when its class was defined" % name)
        for file, source in self.sources.items():
            if file != path:
                self.require_not_looked_at(file, module)
            if file == path or name.encode() in source:
                there = self.at_import(file)
                bound = {bound for _, _, part, bound in there.imports if part == name}
                is_used = (bound | {name}) & there.names or name in there.attributes
                if is_used or name in there.texts or (file == path and there.sees_all):
                    raise NeedsImport("%s may look at %s" % (file, name))

    def require_not_taken(self, file, module, name, value):
        """Raise ``NeedsImport`` if another file may take a name from a module when it is imported."""
        there, taker = self.at_import(file), self.modules.get(file)
        if name in there.texts:
            raise NeedsImport("%s has the text %s" % (file, name))
        for level, whole, part, _ in there.imports:
            is_taken = part == name or (part == STAR and name in exported(module))
            if is_taken and (taker is None or absolute_name(taker, level, whole) == module.__name__):
                others = (
                    absolute_name(taker, *each[:2]) for each in there.imports if taker and each[2] == STAR == part
                )
                found = (sys.modules.get(each) for each in others if each != module.__name__)
                if not any(name in exported(each) and vars(each).get(name) is value for each in found if each):
                    raise NeedsImport("%s imports %s from here" % (file, name))
        for chain in there.attributes.get(name, ()):
            owner = resolved(taker, chain, there.imports)
            if owner is None or owner is module:
                raise NeedsImport("%s uses a %s" % (file, name))


class ImportTimeCode:
    """What the code of a module that runs when it is imported uses and binds.

    Raises ``SyntaxError`` and others if it cannot be parsed.
    """

    def __init__(self, path, source, executed):
        self.names, self.texts, self.attributes, self.imports, bound = set(), set(), {}, [], []
        self.sets_globals = False
        """Whether it gives values to names of the module that are not written as names."""
        self.is_quiet = True
        """Whether it calls nothing but what has no effect, and changes nothing of other modules."""
        self.listed, in_list, harmless = set(), set(), set()
        """Texts in ``__all__``, which mean names of this module."""
        tree = ast.parse(source)
        self.always_imported = always_imported(tree)
        for node in nodes_at_import(tree, path, executed):
            self.is_quiet = self.is_quiet and not may_have_effect(node)
            annotation = getattr(node, "annotation", None) or getattr(node, "returns", None)
            for part in ast.walk(annotation) if annotation is not None else ():
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    self.names.update(re.findall(r"\w+", part.value))
            if isinstance(node, ast.Name):
                if isinstance(node.ctx, ast.Load):
                    if node not in harmless:
                        self.names.add(node.id)
                else:
                    bound.append(node.id)
            elif is_setting_global(node):
                harmless.add(node.value.func)
                self.sets_globals = True
            elif isinstance(node, ast.Attribute):
                self.attributes.setdefault(node.attr, set()).add(chain_of(node.value))
            elif isinstance(node, (ast.Assign, ast.AugAssign)):
                targets = getattr(node, "targets", None) or [node.target]
                if any(getattr(each, "id", "") == "__all__" for each in targets):
                    found = [each for each in ast.walk(node.value) if isinstance(each, ast.Constant)]
                    self.listed.update(each.value for each in found)
                    in_list.update(map(id, found))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in in_list:
                self.texts.add(node.value)
            elif isinstance(node, (*FUNCTIONS, ast.ClassDef, ast.ExceptHandler)):
                bound.append(node.name)
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                found = list(imports_of([node]))
                self.imports += found
                bound += [name for _, _, _, name in found]
        self.bound_once = {name for name in bound if name} - repeated(bound)
        seen = (self.names | set(self.attributes)) & INTROSPECTION
        self.sees_all, self.sees_others = bool(seen), bool(seen - OWN_NAMES)
        self.declared_global = {name.decode() for names in GLOBAL.findall(source) for name in WORD.findall(names)}


def imports_of(nodes):
    """Level, module, part of it and bound name of all that some statements import; the part of a module is empty."""
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield 0, alias.name, "", alias.asname or alias.name.partition(".")[0]
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield node.level, node.module or "", alias.name, alias.asname or alias.name


def always_imported(tree):
    """The imports of a module that stand under no condition; see :func:`imports_of`."""
    return list(imports_of(node for node in tree.body if is_import(node) and not isinstance(node, ast.If)))


def absolute_name(module, level, whole):
    """The full name of what a module imports."""
    try:
        return importlib.util.resolve_name("." * level + whole, module.__package__ or "") if level else whole
    except (ImportError, ValueError, AttributeError):
        raise NeedsImport("a relative import cannot be resolved") from None


def exported(module):
    """The names that ``from module import *`` takes."""
    listed = getattr(module, "__all__", None)
    return {name for name in vars(module) if name[:1] != "_"} if listed is None else set(listed)


def is_submodule(package, name):
    """Whether what a package has under a name is its imported module of that name."""
    found = sys.modules.get("%s.%s" % (package, name))
    return found is not None and vars(sys.modules[package]).get(name) is found


def chain_of(node):
    """``a.b.c`` for a name with attributes; empty for anything else."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *parts[::-1]]) if isinstance(node, ast.Name) else ""


def resolved(module, chain, imports):
    """What a dotted name in a module is, through modules alone; ``None`` if that is not known.

    A name that the module deletes again is what its imports bind it to.
    """
    first, *names = chain.split(".")
    found = vars(module).get(first) if module is not None and first else None
    if found is None and (0, first, "", first) in imports:
        found = sys.modules.get(first)
    for name in names:
        found = vars(found).get(name) if isinstance(found, types.ModuleType) else None
    return found


def nodes_at_import(tree, path, executed):
    """The nodes that run when a module is imported: all but the bodies of functions that have not run by then."""
    left = [tree]
    while left:
        node = left.pop()
        yield node
        name = getattr(node, "name", "<lambda>")
        if isinstance(node, FUNCTIONS) and (path, first_line_of(node), name) not in executed:
            left += node.decorator_list + [node.args] + ([node.returns] if node.returns else [])
        elif isinstance(node, ast.Lambda) and (path, node.lineno, name) not in executed:
            left.append(node.args)
        else:
            left += ast.iter_child_nodes(node)


def may_have_effect(node):
    """Whether a node calls something that is not known to have no effect, or sets a part of something."""
    called = [node.func] if isinstance(node, ast.Call) else getattr(node, "decorator_list", ())
    if isinstance(node, ast.Call) and not isinstance(node.func, (ast.Name, ast.Attribute)):
        return True
    chains = [chain_of(each) for each in called if not isinstance(each, ast.Call)]
    if isinstance(node, ast.AugAssign) or any(
        {each, each.partition(".")[0]}.isdisjoint(PLAIN_CALLS) for each in chains
    ):
        return True
    return isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load)


def is_setting_global(node):
    """Whether a node is the target of ``globals()[…] = …``, which looks at nothing."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.ctx, ast.Store):
        return False
    return isinstance(node.value, ast.Call) and getattr(node.value.func, "id", "") in OWN_NAMES


def repeated(names):
    """Those of the names that are there more than once."""
    seen, found = set(), set()
    for name in names:
        (found if name in seen else seen).add(name)
    return found


def blocks_in(tree, num_lines):
    """First line, last line and content of each run of imports among the statements of a module.

    The lines include those without code before and behind it.
    """
    body, number = tree.body, 0
    while number < len(body):
        first = number
        while number < len(body) and is_import(body[number]):
            number += 1
        if number > first:
            start = body[first - 1].end_lineno + 1 if first else 1
            end = first_line_of(body[number]) - 1 if number < len(body) else num_lines
            if start <= body[first].lineno and body[number - 1].end_lineno <= end:  # not behind a semicolon
                yield start, end, Imports(body[first:number])
        number += 1


def is_import(node):
    """Whether a statement is an import, or a condition for type checkers with nothing else in it."""
    if isinstance(node, ast.If):
        names = (getattr(node.test, "id", ""), getattr(node.test, "attr", ""))
        is_plain = all(isinstance(each, (ast.Import, ast.ImportFrom, ast.Pass)) for each in node.body)
        return "TYPE_CHECKING" in names and is_plain and not node.orelse
    return isinstance(node, ast.Import) or (isinstance(node, ast.ImportFrom) and node.module != "__future__")


def first_line_of(node):
    """The first line of a statement, with its decorators."""
    return min([node.lineno] + [each.lineno for each in getattr(node, "decorator_list", ())])


def imports_in(lines):
    """The imports in some lines. Raises ``NeedsImport`` if anything else is there."""
    try:
        body = ast.parse("".join(lines)).body
    except (SyntaxError, ValueError, RecursionError):
        raise NeedsImport("changed imports cannot be parsed alone") from None
    if not all(map(is_import, body)):
        raise NeedsImport("something else stands among imports")
    return Imports(body)


def file_of(module):
    """The path of a module's file without links and detours; empty if it has none."""
    path = getattr(module, "__file__", None) if isinstance(module, types.ModuleType) else None
    return real(path) if isinstance(path, str) else ""


def real(path, known={}):  # noqa: B006
    """The path without links and detours; one file may be imported under several. ``known`` keeps the answers."""
    if path not in known:
        known[path] = os.path.realpath(path)
    return known[path]
