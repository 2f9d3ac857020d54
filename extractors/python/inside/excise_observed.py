"""Rewrites functions of tests so that they say what they do with values. Standard library only.

Loads of attributes and items, calls, comparisons and unpackings are passed through hooks: builtins that return what
they get. Only bodies of functions that are defined already are replaced, in place; what a module did when it was
imported is not seen. Every place in the source has a number, its *site*.
"""

import ast
import os
import types
from importlib.util import decode_source

import excise_values as values
from excise_swap import GENERATOR_FLAGS, NeedsImport, Surroundings, functions_in, read, real

HOOKS = ("base", "got", "callee", "argument", "options", "result", "key", "left", "right", "parts")
"""Names of the hooks; see ``excise_watch.Watch``."""
UNSEEN = ("args", "returns", "decorator_list", "annotation", "type_params")
"""Fields of definitions whose code does not run in the body."""


def builtin_name(hook):
    """Name of the builtin that calls a hook."""
    return "__excise_watch_%s__" % hook


class Site:
    """A place in a source, known by the end of its expression.

    ``kind`` is ``attribute``, ``item``, ``call``, ``comparison`` or ``parts``; ``word`` the attribute, the key or the
    comparison; ``keywords`` are those of a call.
    """

    __slots__ = ("keywords", "kind", "place", "word")

    def __init__(self, path, kind, node, word, keywords):
        self.place = (path, kind, node.end_lineno, node.end_col_offset)
        self.kind, self.word, self.keywords = kind, word, keywords


class Rewriter(ast.NodeTransformer):
    """Passes operands through hooks; ``sites`` is the list to which the places are added."""

    def __init__(self, path, sites):
        self.path, self.sites = path, sites

    def site(self, kind, node, word="", keywords=()):
        self.sites.append(Site(self.path, kind, node, word, keywords))
        return len(self.sites) - 1

    def hooked(self, hook, site, value):
        """The value passed through a hook."""
        function = ast.copy_location(ast.Name(id=builtin_name(hook), ctx=ast.Load()), value)
        number = ast.copy_location(ast.Constant(value=site, kind=None), value)
        return ast.copy_location(ast.Call(func=function, args=[number, value], keywords=[]), value)

    def generic_visit(self, node):
        for name, value in ast.iter_fields(node):
            if name in UNSEEN:
                continue
            if isinstance(value, list):
                value[:] = [self.visit(each) if isinstance(each, ast.AST) else each for each in value]
            elif isinstance(value, ast.AST):
                setattr(node, name, self.visit(value))
        return node

    def visit_Lambda(self, node):
        node.body = self.visit(node.body)
        return node

    def visit_match_case(self, node):
        """Patterns may hold no calls."""
        if node.guard is not None:
            node.guard = self.visit(node.guard)
        node.body[:] = [self.visit(each) for each in node.body]
        return node

    def visit_Attribute(self, node):
        return self.attribute(node, isinstance(node.ctx, ast.Load))

    def attribute(self, node, is_kept):
        """A load of an attribute; ``is_kept``: its value is passed through a hook, too."""
        if not isinstance(node.ctx, ast.Load):
            return self.generic_visit(node)
        site = self.site("attribute", node, node.attr)
        node.value = self.hooked("base", site, self.visit(node.value))
        return self.hooked("got", site, node) if is_kept else node

    def visit_Subscript(self, node):
        if not isinstance(node.ctx, ast.Load):
            return self.generic_visit(node)
        key = node.slice.value if type(node.slice).__name__ == "Index" else node.slice  # Index: Python 3.8
        word = key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else ""
        site = self.site("item", node, word)
        node.value = self.hooked("base", site, self.visit(node.value))
        if type(key).__name__ in ("Slice", "ExtSlice", "Tuple"):
            node.slice = self.visit(node.slice)
        elif key is node.slice:
            node.slice = self.hooked("key", site, self.visit(key))
        else:
            node.slice.value = self.hooked("key", site, self.visit(key))
        return self.hooked("got", site, node)

    def visit_Call(self, node):
        site = self.site("call", node, "", tuple(each.arg for each in node.keywords if each.arg))
        func = node.func
        func = self.attribute(func, False) if isinstance(func, ast.Attribute) else self.visit(func)
        node.func = self.hooked("callee", site, func)
        node.args = [self.argument(site, each) for each in node.args]
        for each in node.keywords:
            hook = "argument" if each.arg else "options"
            each.value = self.hooked(hook, site, self.visit(each.value))
        return self.hooked("result", site, node)

    def argument(self, site, node):
        """An argument of a call."""
        if isinstance(node, ast.Starred):
            node.value = self.hooked("argument", site, self.visit(node.value))
            return node
        return self.hooked("argument", site, self.visit(node))

    def visit_Compare(self, node):
        self.generic_visit(node)
        if len(node.ops) == 1:
            site = self.site("comparison", node, type(node.ops[0]).__name__)
            node.left = self.hooked("left", site, node.left)
            node.comparators = [self.hooked("right", site, node.comparators[0])]
        return node

    def visit_Assign(self, node):
        self.generic_visit(node)
        if any(isinstance(target, (ast.Tuple, ast.List)) for target in node.targets):
            node.value = self.hooked("parts", self.site("parts", node), node.value)
        return node

    def visit_JoinedStr(self, node):
        """Of formatted values, the expressions; format specifications are texts."""
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                part.value = self.visit(part.value)
        return node


def rewrite(root, path, ranges, functions, sites):
    """Give the functions of a file below ``root`` that are defined in ``ranges`` of lines their observed code.

    ``functions`` are the project's, by :func:`excise_swap.key_of`. The places are added to ``sites``.
    """
    file = real(os.path.join(root, path))
    if not os.path.isfile(file):
        return
    tree = ast.parse(decode_source(read(file)))
    surroundings = Surroundings(tree)
    for first, last, node, owners in functions_in(tree, ()):
        if not any(first <= end and start <= last for start, end in ranges):
            continue
        rewriter, before = Rewriter(path, sites), len(sites)
        try:
            node.body[:] = [rewriter.visit(each) for each in node.body]
            code = surroundings.compile(node, owners, file)
        except (NeedsImport, SyntaxError, ValueError, RecursionError):
            del sites[before:]
            continue
        for each in with_inner(code):
            for function in functions.get((file, each.co_firstlineno, each.co_name), ()):
                if fits(function.__code__, each):
                    note_rewritten(each, function.__code__)
                    function.__code__ = each


def note_rewritten(new, old):
    """Note which code stands in the place of which, with that in it, as far as both have the same."""
    values.rewritten[new] = old
    inner = [[each for each in code.co_consts if isinstance(each, types.CodeType)] for code in (new, old)]
    if [each.co_name for each in inner[0]] == [each.co_name for each in inner[1]]:
        for pair in zip(*inner):  # noqa: B905  (Python 3.8 has no `strict`)
            note_rewritten(*pair)


def with_inner(code):
    """The code of a function, and of the named ones in it, of which there may be functions already."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType) and not constant.co_name.startswith("<"):
            yield from with_inner(constant)


def fits(old, new):
    """Whether a function can take the new code."""
    count = old.co_argcount + old.co_kwonlyargcount
    return (
        old.co_freevars == new.co_freevars
        and not (old.co_flags ^ new.co_flags) & GENERATOR_FLAGS
        and (old.co_argcount, old.co_kwonlyargcount) == (new.co_argcount, new.co_kwonlyargcount)
        and old.co_varnames[:count] == new.co_varnames[:count]
    )
