"""The examples in documents (``>>> f(2)``) as tests, so that a run tells which of them a removal makes false."""

from __future__ import annotations

import doctest
import re
from collections.abc import Mapping

from excise.deleters.python.deletion_builder import require_python
from excise.protocols import Codebase, ExampleTests

MAX_EXAMPLES = 200
"""Number of examples of all documents; further documents are left out."""
MAX_SECONDS = 4
"""Seconds for the examples of all documents, after which none counts as passing; a test may take five."""
_PROMPT = re.compile(r"^\s*>>> (.*)$", re.MULTILINE)
_FENCE = re.compile(r"^[ \t]*(?:`{3,}|~{3,}).*$", re.MULTILINE)
"""The first or last line of a block of code in Markdown, which is no part of what an example gives."""
_UNSAFE = re.compile(r"\bos\.(?:_exit|abort|fork|kill)|\b(?:multiprocessing|threading|subprocess|signal)\b|\binput\(")
"""What may end the run or go on after it: such documents are left out."""
_FILE = "test_excise_documents.py"
_PROGRAM = """\
import doctest
import time

import pytest

DOCUMENTS = {documents!r}
EXAMPLES = {examples!r}
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL
END = time.monotonic() + {seconds}
FOUND = {{}}


class Runner(doctest.DocTestRunner):
    def __init__(self):
        super().__init__(verbose=False, optionflags=FLAGS)
        self.failing = set()

    def report_start(self, out, test, example):
        if time.monotonic() > END:
            raise TimeoutError("too many examples")

    def report_failure(self, out, test, example, got):
        self.failing.add(test.examples.index(example))

    def report_unexpected_exception(self, out, test, example, exc_info):
        self.failing.add(test.examples.index(example))


def failing(document):
    if document not in FOUND:
        FOUND[document] = None
        runner = Runner()
        test = doctest.DocTestParser().get_doctest(DOCUMENTS[document], {{"__name__": "__main__"}}, "document", None, 0)
        runner.run(test, out=lambda text: None)
        FOUND[document] = runner.failing
    return FOUND[document]


@pytest.mark.parametrize(("document", "example"), EXAMPLES, ids=["%d-%d" % each for each in EXAMPLES])
def test_example(document, example):
    found = failing(document)
    assert found is not None and example not in found
"""


class DocumentedExamples:
    """What deleters have whose deletions leave documents true; see :class:`excise.protocols.DocumentingDeleter`."""

    def example_tests(self, codebase: Codebase, documents: Mapping[str, str]) -> ExampleTests:
        """See :meth:`excise.protocols.DocumentingDeleter.example_tests`."""
        tops = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(require_python(codebase).names.tops)))})\b")
        texts: list[str] = []
        tests: dict[str, str] = {}
        pairs: list[tuple[int, int]] = []
        for path, whole in documents.items():
            text = _FENCE.sub("", whole) if ">>> " in whole else ""
            is_about_it = any(map(tops.search, _PROMPT.findall(text)))
            examples = _examples(text) if is_about_it and not _UNSAFE.search(text) else []
            if examples and len(tests) + len(examples) <= MAX_EXAMPLES:
                for number, example in enumerate(examples):
                    pairs.append((len(texts), number))
                    test_id = f"{_FILE}::test_example[{len(texts)}-{number}]"
                    tests[test_id] = f"{path}: {example.source.strip()}\n{example.want}"
                texts.append(text)
        if not tests:
            return ExampleTests({}, {})
        program = _PROGRAM.format(documents=texts, examples=pairs, seconds=MAX_SECONDS)
        return ExampleTests({_FILE: program.encode("utf-8", "replace")}, tests)


def _examples(text: str) -> list[doctest.Example]:
    """The examples of a document; none if they cannot be read."""
    try:
        return doctest.DocTestParser().get_examples(text)
    except ValueError:
        return []
