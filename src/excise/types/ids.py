"""Ids of tests and of symbols: the one place that knows how they are built.

Both are texts that begin with a path of the repository, in every language: ``path::name::name[parameter]`` for tests,
``path::qualname`` for symbols. A language adapter translates the names that its test runner gives to tests to and from
this form; everything else takes ids apart with the functions of this module.
"""

from __future__ import annotations

from dataclasses import dataclass

_SEPARATOR = "::"


@dataclass(frozen=True, slots=True)
class TestId:
    """The parts of a test's id."""

    __test__ = False

    path: str
    """File of the test, inside the repository."""
    names: tuple[str, ...] = ()
    """Names of the classes or suites around the test, and of its function; empty for a whole file."""
    parameter: str = ""
    """What tells runs of one function apart; it may contain any characters. Empty for a function without parameters."""

    @classmethod
    def parse(cls, text: str) -> TestId:
        """The parts of an id."""
        path, _, rest = text.partition(_SEPARATOR)
        function, bracket, parameter = rest.partition("[")
        names = tuple(function.split(_SEPARATOR)) if function else ()
        return cls(path, names, parameter.removesuffix("]") if bracket else "")

    def __str__(self) -> str:
        """The id."""
        function = _SEPARATOR.join((self.path, *self.names))
        return f"{function}[{self.parameter}]" if self.parameter else function

    @property
    def function(self) -> str:
        """The id without its parameter."""
        return _SEPARATOR.join((self.path, *self.names))

    @property
    def qualname(self) -> str:
        """The names as the qualified name of a symbol: ``TestBox.test_it``."""
        return ".".join(self.names)


def path_of(any_id: str) -> str:
    """The file of a test or symbol."""
    return any_id.partition(_SEPARATOR)[0]


def name_in_file(any_id: str) -> str:
    """What follows the path in the id of a test or symbol; empty for a whole file."""
    return any_id.partition(_SEPARATOR)[2]


def dotted_name(any_id: str) -> str:
    """What follows the path, with dots between the names: ``TestBox.test_it[3]``."""
    return name_in_file(any_id).replace(_SEPARATOR, ".")


def is_whole_file(any_id: str) -> bool:
    """Whether the id is that of a file."""
    return _SEPARATOR not in any_id


MAX_TEST_ID = 2000
"""Number of characters of the id of a test up to which it is used: some parameters are megabytes of text."""


def without_parameter(test_id: str) -> str:
    """The id of a test's function."""
    path, separator, rest = test_id.partition(_SEPARATOR)
    return f"{path}{separator}{rest.partition('[')[0]}"


def has_parameter(test_id: str) -> bool:
    """Whether the test is one of several runs of one function."""
    return "[" in name_in_file(test_id)


def joined(path: str, *names: str) -> str:
    """The id of what has these names in a file: of a test, or, with one name, of a symbol."""
    return _SEPARATOR.join((path, *names))


def is_inside(any_id: str, holder: str) -> bool:
    """Whether something is ``holder``, or in it by its name."""
    return any_id == holder or any_id.startswith((f"{holder}.", f"{holder}{_SEPARATOR}"))


def holders_of(symbol_id: str) -> tuple[str, ...]:
    """The ids of what a symbol is in, from its file on; none for a file."""
    if is_whole_file(symbol_id):
        return ()
    path, names = path_of(symbol_id), name_in_file(symbol_id).split(".")
    return path, *(joined(path, ".".join(names[:end])) for end in range(1, len(names)))


def symbol_of_test(test_id: str) -> str:
    """The id of the symbol that defines a test."""
    test = TestId.parse(without_parameter(test_id))
    return joined(test.path, test.qualname) if test.names else test.path


def holders_of_test(test_id: str) -> tuple[str, ...]:
    """The ids of what a test is in, from its file to the class or suite around it."""
    test = TestId.parse(without_parameter(test_id))
    return tuple(joined(test.path, *test.names[:end]) for end in range(max(1, len(test.names))))
