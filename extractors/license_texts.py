"""Which licence a text is."""

from __future__ import annotations

import re

MAX_TEXT = 20_000
"""Number of characters at its beginning by which a licence is told."""
MAX_NAME = 80
"""Number of characters above which a field is no name of a licence."""
_LICENSE_TEXTS = (
    ("Apache-2.0", r"apache (software )?license,?\s+version 2\.0"),
    ("MPL-2.0", r"mozilla public license,? version 2\.0"),
    ("AGPL-3.0", r"gnu affero general public license\s+version 3"),
    ("LGPL-3.0", r"gnu lesser general public license\s+version 3"),
    ("LGPL-2.1", r"gnu lesser general public license\s+version 2\.1"),
    ("GPL-3.0", r"gnu general public license\s+version 3"),
    ("GPL-2.0", r"gnu general public license\s+version 2"),
    ("PSF-2.0", r"python software foundation license"),
    ("Unlicense", r"free and unencumbered software released into the public domain"),
    ("MIT", r"permission is hereby granted, free of charge, to any person"),
    ("ISC", r"permission to use, copy, modify, and(/or)? distribute this software for any purpose"),
    ("BSD-3-Clause", r"redistribution and use in source and binary forms.*may be used to endorse"),
    ("BSD-2-Clause", r"redistribution and use in source and binary forms"),
)
"""SPDX id and a pattern for the licence text (white space folded, lower case), the most specific pattern first."""


def license_of_text(text: str) -> str:
    """The SPDX id of the licence that a text is or begins with; empty if it is unknown."""
    folded = " ".join(text[:MAX_TEXT].lower().split())
    return next((spdx for spdx, pattern in _LICENSE_TEXTS if re.search(pattern, folded)), "")


def license_name(text: str) -> str:
    """What a manifest's field says: the name as written, or the SPDX id of a whole licence text."""
    if "\n" not in text.strip() and len(text) <= MAX_NAME:
        return text.strip()
    return license_of_text(text)
