"""Makes the calls that docstrings of removed code show (``>>> f(2)``), so that they are recorded.

Statements show these docstrings, and readers rely on their examples, whether tests make such calls or not. Calls of a
docstring one of whose examples fails are not recorded: it is no truth to rely on.
"""

import contextlib
import io
import re
import signal
import sys

PROMPT = ">>> "
RECORDED = frozenset({"function", "method", "classmethod", "staticmethod", "property"})
"""Kinds of the recorded functions whose docstrings are read."""
MAX_SECONDS = 5
"""Seconds for the examples of all docstrings, after which the rest is left out."""
UNSAFE = re.compile(r"\bos\.(?:_exit|abort|fork|kill)|\b(?:multiprocessing|threading|subprocess|signal)\b|\binput\(")
"""What may end the run, or make calls when the examples are over: such docstrings are left out."""
AGAIN_SECONDS = 1
"""Seconds after which they are ended again: code may catch what ends them."""


def record_examples(recorder):
    """Run the examples in the docstrings of the functions that ``recorder`` records, and of their classes."""
    texts = ((text, names) for text, names in docstrings(recorder) if isinstance(text, str) and PROMPT in text)
    found = {text: names for text, names in texts if not UNSAFE.search(text)}
    if not found:
        return
    ended = []

    def end(*_):
        """End the examples: what else is raised in one is its outcome."""
        ended.append(True)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, MAX_SECONDS, AGAIN_SECONDS)
    known = len(recorder.calls)
    try:
        for text, names in found.items():
            known = len(recorder.calls)
            if not passes(text, names) or ended:
                take_back(recorder, known)
            if ended:
                break
    except KeyboardInterrupt:
        take_back(recorder, known)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def docstrings(recorder):
    """Docstrings of the recorded functions and of their classes, each with the names of its module."""
    for original, _, kind, owner in list(recorder.originals.values()):
        if kind in RECORDED:
            yield original.__doc__, original.__globals__
            if isinstance(owner, type) and owner.__module__ in sys.modules:
                yield owner.__doc__, vars(sys.modules[owner.__module__])


def take_back(recorder, count):
    """Remove all recorded calls but the first ``count`` ones."""
    del recorder.calls[count:]
    for text in [text for text, number in recorder.index.items() if number >= count]:
        recorder.ends.pop(recorder.index.pop(text), None)
        recorder.seen.discard(text)


def passes(text, names):
    """Whether all examples of a docstring give what it says, run with a copy of the names of its module."""
    import doctest  # many docstrings have no examples

    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL
    try:
        test = doctest.DocTestParser().get_doctest(text, dict(names), "docstring", None, 0)
    except ValueError:  # lines that are not indented as they should be
        return False
    runner = doctest.DocTestRunner(verbose=False, optionflags=flags)
    unheard = io.StringIO()
    try:
        with contextlib.redirect_stderr(unheard):
            return runner.run(test, out=unheard.write).failed == 0
    except Exception:  # an example closed the output that its result is read from
        return False
