"""Rules for languages: only the rooms of a language know it, and ids are taken apart in one place."""

from __future__ import annotations

import re

import pytest

from excise.deleters.code_editors import editor_of
from excise.extractors.languages import get_language
from excise.languages import LANGUAGES
from excise.protocols import GradedRunRequest, GradingMode, Start
from excise.types import Recipe

from .test_layout import MAY_IMPORT, ROOT, imported_modules, modules

pytestmark = pytest.mark.xdist_group("layout")
ROOMS = ("extractors/{}/", "deleters/{}/", "envs/{}/", "verifiers/attacks/{}/")
"""Folders of one language."""
SPLITTERS = {
    "deleters/statement/project_docs.py",  # the double colon of reStructuredText
    "envs/plan/pytest_command.py",
}
"""Modules with ``"::"`` in their code that is not of an id of the set, or that are to move to the rooms of Python."""
_SPLIT = re.compile(r"""(?:partition|split)\(["'](?:::|\[)["']|["']::["'] in |}::{|replace\(["']::["']""")


@pytest.mark.parametrize("language", LANGUAGES)
def test_only_the_rooms_of_a_language_import_them(language: str) -> None:
    rooms = tuple(room.format(language) for room in ROOMS)
    prefixes = tuple(room.replace("/", ".") for room in rooms)
    found = set()
    for folder in MAY_IMPORT:
        for path in modules(folder):
            name = path.relative_to(ROOT).as_posix()
            imports = imported_modules(path.read_text(encoding="utf-8"))
            if not name.startswith(rooms) and any(f"{each}.".startswith(prefixes) for each in imports):
                found.add(name)
    assert found == set()


def test_ids_are_taken_apart_in_one_place() -> None:
    found = set()
    for folder in MAY_IMPORT:
        for path in modules(folder):
            name = path.relative_to(ROOT).as_posix()
            in_room = any(name.startswith(room.format(language)) for room in ROOMS for language in LANGUAGES)
            if not in_room and "inside" not in path.parts and _SPLIT.search(path.read_text(encoding="utf-8")):
                found.add(name)
    assert found <= SPLITTERS


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_its_rooms(language: str) -> None:
    assert get_language(language).name == language
    assert "stub" in editor_of(language).deleters
    heads = get_language(language).scan_rules.definitions
    assert all(re.match(r"\w+", head) for head in heads), "the recovery agent searches for their first words"


@pytest.mark.parametrize("language", LANGUAGES)
def test_only_programs_that_serve_are_forked(language: str) -> None:
    spoken, recipe = get_language(language), Recipe(python="3.12.1")
    mode = GradingMode(strict=False, sealed=False)
    request = GradedRunRequest(mode=mode, ids=(), timeout_s=1.0, test_timeout_s=1.0)
    servers = [spoken.grading.run_server(recipe, request), spoken.grading.replay_server(recipe, 0)]
    servers += [spoken.fork_server(recipe, start) for start in Start]
    programs = [word for server in servers if server is not None for word in server.argv if word.endswith(".py")]
    silent = [name for name in programs if "--serve" not in (spoken.inside / name.rpartition("/")[2]).read_text()]
    assert not silent, "a sandbox waits a minute for the answer of one that does not serve"
    assert bool(programs) is (language == "python")
