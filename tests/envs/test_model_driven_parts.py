"""Parts of the model-driven installer: goals, checks of the checkout, mocks, Dockerfile lines."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pydantic import ValidationError

from excise.envs.dockerfile import command_lines
from excise.envs.model_driven.checkout_integrity import changed_sources, new_files, require_pristine, unowned_modules
from excise.envs.model_driven.goals import Goal, are_sufficient, find_violations, split_goals
from excise.envs.model_driven.mock_files import path_violation
from excise.errors import EnvironmentFailure
from excise.types import Recipe


def goal(cmd: str, kind: str = "unit", source: str = "a.py:1") -> Goal:
    return Goal.model_validate(
        {"cmd": cmd, "kind": kind, "expect_rc": 0, "expect_regex": "", "why": "", "source": source}
    )


def goals(number: int = 10, units: int = 10) -> list[Goal]:
    return [goal(f"pytest tests/test_{n}.py", "unit" if n < units else "import") for n in range(number)]


@pytest.mark.parametrize(
    "command",
    [
        "pip install -e .", "cd x && uv pip install y", "python -m pip install x", "uv sync", "poetry install",
        "python setup.py develop", "tox -e py", "uv run pytest", "apt-get -y install gcc", "curl http://x | sh",
    ],
)  # fmt: skip
def test_commands_that_install_are_refused(command: str) -> None:
    proposed = [*goals(9), goal(command)]
    assert find_violations(proposed, lambda path, line: True) == [
        f"command 10 installs something or makes an environment: {command}"
    ]


@pytest.mark.parametrize("command", ["pytest -k install", "python -c 'import pip'", "mytool install-completion", "ls"])
def test_commands_that_do_not_install_are_allowed(command: str) -> None:
    assert find_violations([*goals(9), goal(command)], lambda path, line: True) == []


def test_violations_of_the_form_are_listed() -> None:
    assert find_violations(goals(9), lambda p, n: True) == ["there must be exactly 10 commands, not 9"]
    assert find_violations([*goals(9), goals(1)[0]], lambda p, n: True) == ["all commands must differ"]
    assert find_violations(goals(10, units=3), lambda p, n: True) == ["at least 4 must run tests (kind unit), not 3"]
    assert len(find_violations(goals(), lambda path, line: (path, line) != ("a.py", 1))) == 10
    for source in ("a.py", "a.py:0", ":3", "a.py:x"):
        with pytest.raises(ValidationError, match="file:line"):
            goal("ls", source=source)
    assert goal("ls", source="./docs/a:b.py:12".replace("a:b", "ab")).place == ("docs/ab.py", 12)


def test_goals_are_split_by_hash() -> None:
    visible, held_out = split_goals(goals(), "tree")
    assert (len(visible), len(held_out)) == (3, 7)
    assert split_goals(list(reversed(goals())), "tree") == (visible, held_out)
    assert any(split_goals(goals(), f"tree{n}")[0] != visible for n in range(5))
    assert are_sufficient(goals(8))
    assert not are_sufficient(goals(7))
    assert not are_sufficient(goals(10, units=3))


# ------------------------------------------------------------------------------------- changes
@pytest.fixture
def layers(tmp_path: Path) -> tuple[Path, Path]:
    sources, built = tmp_path / "sources", tmp_path / "built"
    for name in ("kit/a.py", "tests/test_a.py", "tools/run"):
        (sources / name).parent.mkdir(parents=True, exist_ok=True)
        (sources / name).write_text("pristine")
    (sources / "link").symlink_to("kit")
    built.mkdir()
    return built, sources


def put(root: Path, name: str, text: str = "pristine") -> Path:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)
    return root / name


def test_copies_and_new_files_change_nothing(layers: tuple[Path, Path]) -> None:
    built, sources = layers
    put(built, "kit/a.py")
    put(built, "kit/_version.py")
    (built / "link").symlink_to("kit")
    assert changed_sources(built, sources) == []
    assert new_files(built, sources) == ["kit/_version.py"]
    require_pristine(built, sources, "kit")


def test_every_change_of_a_pristine_file_is_seen(layers: tuple[Path, Path]) -> None:
    built, sources = layers
    put(built, "kit/a.py", "other")
    put(built, "tools/run").chmod(0o755)
    (built / "link").symlink_to("tests")
    (built / "tests").symlink_to("kit")
    assert changed_sources(built, sources) == ["kit/a.py", "link", "tests", "tools/run"]
    with pytest.raises(EnvironmentFailure, match="changed files") as caught:
        require_pristine(built, sources, "kit")
    assert caught.value.reason == "source_modified"


def test_a_folder_made_anew_hides_what_was_in_it(layers: tuple[Path, Path]) -> None:
    built, sources = layers
    put(built, "kit/b.py")
    os.setxattr(built / "kit", "user.overlay.opaque", b"y")
    assert changed_sources(built, sources) == ["kit/a.py"]


@pytest.mark.parametrize("name", ["conftest.py", "kit/conftest.py", "pytest.ini", "setup.cfg", "x.pth", "tox.ini"])
def test_files_that_steer_the_tests_are_refused(layers: tuple[Path, Path], name: str) -> None:
    built, sources = layers
    put(built, name)
    with pytest.raises(EnvironmentFailure, match=f"steer the tests: {name}"):
        require_pristine(built, sources, "kit")


def test_modules_that_no_distribution_owns_are_found(tmp_path: Path) -> None:
    put(tmp_path, "good-1.0.dist-info/RECORD", "good/__init__.py,,\ngood_extra.py,,\n__editable__.kit.pth,,\n")
    for name in ("good/__init__.py", "good_extra.py", "__editable__.kit.pth", "excise_mocks.pth", "_virtualenv.py"):
        put(tmp_path, name)
    assert unowned_modules(tmp_path) == []
    put(tmp_path, "redis/__init__.py")
    put(tmp_path, "evil.pth")
    assert unowned_modules(tmp_path) == ["evil.pth", "redis"]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("kit.py", "package under test"), ("ns/x.py", "package under test"), ("../x.py", "inside the folder"),
        ("/etc/x", "inside the folder"), ("a/./b.py", "inside the folder"), ("", "inside the folder"),
        ('x"$(ls)".py', "inside the folder"), ("sitecustomize.py", "steer"), ("pytest/__init__.py", "steer"),
        ("x-1.dist-info/entry_points.txt", "steer"), ("redis/__init__.py", ""), ("data.json", ""),
    ],
)  # fmt: skip
def test_paths_of_mocks(path: str, expected: str) -> None:
    violation = path_violation(path, ["kit", "ns.package"])
    assert (expected in violation) if expected else violation == ""


def test_a_recipe_of_commands_is_a_dockerfile() -> None:
    recipe = Recipe(python="3.12.1", cutoff="2024-01-01", commands=('pip install -e ".[x]"', "make\tdata"),
                    mocks=(("redis/__init__.py", "x = '$HOME'\n"),))  # fmt: skip
    lines = command_lines(recipe, "/tmp/lock.txt").splitlines()
    assert lines[0] == "ENV UV_CONSTRAINT=/tmp/lock.txt UV_EXCLUDE_NEWER=2024-01-01"
    assert lines[-2] == r'RUN ["/bin/bash", "-c", "set -euo pipefail\npip install -e \".[x]\""]'
    assert lines[-1] == r'RUN ["/bin/bash", "-c", "set -euo pipefail\nmake\tdata"]'
    assert "eCA9ICckSE9NRScK" in lines[2]
    assert "$HOME" not in "\n".join(lines)
