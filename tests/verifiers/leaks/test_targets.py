"""What of deleted code has fingerprints."""

from __future__ import annotations

import pytest

from excise.extractors.go.analysis.codebase import GoCodebase
from excise.extractors.python.analysis.codebase import PythonCodebase
from excise.protocols import Codebase
from excise.verifiers.leaks.fingerprints import hashes_of, windows, words_of
from excise.verifiers.leaks.targets import targets_of

LICENCE = "Permission is hereby granted free of charge to any person who obtains a copy of this file and its docs"
CODE = "LIMIT = {'first': 1, 'second': 2, 'third': 3, 'fourth': 4, 'fifth': 5, 'sixth': 6, 'seventh': 7}\n"
PYTHON = f'#!/usr/bin/env python\n# {LICENCE}.\n\n# {LICENCE}?\n"""About limits."""\n# {LICENCE}!\n\n{CODE}'
GO = f"// {LICENCE}.\n\n/*\n{LICENCE}?\n*/\npackage limits\n\nvar Limit = []string{{" + '"a", "b", "c", "d", "e"}\n'


@pytest.mark.parametrize(("path", "source"), [("m.py", PYTHON), ("limits/m.go", GO)], ids=["python", "go"])
def test_a_licence_at_the_top_of_a_file_is_no_code(path: str, source: str) -> None:
    make = PythonCodebase.from_texts if path.endswith(".py") else GoCodebase.from_texts
    codebase: Codebase = make({path: source})
    (target,) = [each for each in targets_of(codebase, [(path, source)]) if each.symbol == path]
    licence = set(windows(hashes_of(words_of(LICENCE.encode()))))
    assert licence
    assert not licence & set(target.body)
    code = set(windows(hashes_of(words_of(source[source.rindex("LIMIT" if path == "m.py" else "package") :].encode()))))
    assert code <= set(target.body)
