"""Settings: what counts more than what, where paths lead, and broken files that say what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from excise.config import Settings, default_cache, given_settings, load, with_sources
from excise.errors import ConfigError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for files, with the working directory beside it."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    (tmp_path / "sets").mkdir()
    return tmp_path / "sets"


def written(folder: Path, text: str, name: str = "a.toml") -> Path:
    (folder / name).write_text(text)
    return folder / name


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("sources = 5", r"sources: write it as a list"),
        ('sources = "pypi:toolz"', r'sources: write it as a list: sources = \["pypi:toolz"\]'),
        ('[sources]\nspec = "pypi:toolz"', r"sources: write \[\[sources\]\] with two brackets"),
        ("sources = [5]", r'sources\.0: write a source as "pypi:name"'),
        ('sources = [["pypi:toolz"]]', r'sources\.0: write a source as "pypi:name"'),
        ('sources = ["pypi:toolz", ""]', r"sources\.1: spec is empty"),
        ("[[sources]]\nlimit = 1", r"sources\.0\.spec: is missing"),
        ('[[sources]]\nspec = "x"\nlimits = 1', r"sources\.0\.limits: there is no such setting"),
        ('[[sources]]\nspec = "x"\nlimit = 0', r"sources\.0: limit has to be 1 or more"),
        ('[[sources]]\nspec = "x"\nlimit = -1', r"sources\.0: limit has to be 1 or more"),
        ('[[sources]]\nspec = "x"\npython = 3.12', r"sources\.0\.python: write it in quotes"),
        ('[[sources]]\nspec = "x"\nextras = "test"', r"sources\.0\.extras: write it as a list"),
        ("limit = 0", r"limit: Input should be greater"),
        ("verdict = 5", r"verdict: write it as a table"),
        ("[verdict]\ngold_run = 3", r"verdict\.gold_run: there is no such setting"),
        ('[verdict]\ncutoff = "yesterday"', r"verdict\.cutoff: write a date"),
        ("out = 5", r"out: write a path"),
        ("limit = ", r"not valid TOML"),
    ],
)
def test_a_broken_file_is_named_with_the_key_and_the_remedy(folder: Path, text: str, said: str) -> None:
    path = written(folder, text)
    with pytest.raises(ConfigError, match=rf"{path}: {said}"):
        load([written(folder, "limit = 3", "good.toml"), path], environ={})


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["verdict=5", "verdict.gold_runs=3"], "--set verdict=5: verdict: write it as a table"),
        (["limit=3", "limit.x=3"], "--set limit.x=3: limit: "),
        (["sources=pypi:toolz"], "--set sources=pypi:toolz: sources: write it as a list"),
        (["sources.0.limit=3"], "--set sources.0.limit=3: sources: write "),
        (["limit"], "--set limit: write it as key=value"),
        (["=5"], "--set =5: write it as key=value"),
        (["verdict.=5"], "--set verdict.=5: write it as key=value"),
        (["nothing=5"], "--set nothing=5: nothing: there is no such setting"),
    ],
)
def test_a_broken_override_is_named(folder: Path, overrides: list[str], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load([written(folder, "limit = 4")], overrides, {})
    assert str(caught.value).startswith(said)


def test_a_broken_variable_and_a_broken_option_are_named() -> None:
    with pytest.raises(ConfigError, match=r"^EXCISE_VERDICT__GOLD_RUNS: verdict\.gold_runs: "):
        load(environ={"EXCISE_VERDICT__GOLD_RUNS": "none"})
    with pytest.raises(ConfigError, match=r"^--limit: limit: "):
        load(environ={}, limit=0)


def test_files_then_environment_then_set_then_options(folder: Path) -> None:
    first, second = written(folder, "seed = 1\nlimit = 1\nworkers = 1"), written(folder, "seed = 2", "b.toml")
    environ = {"EXCISE_SEED": "3", "EXCISE_LIMIT": "3"}

    def seed_limit_workers(settings: Settings) -> tuple[int, int | None, int]:
        return settings.seed, settings.limit, settings.workers

    assert seed_limit_workers(load([first, second], [], {})) == (2, 1, 1)
    assert seed_limit_workers(load([first, second], [], environ)) == (3, 3, 1)
    assert seed_limit_workers(load([first, second], ["seed=4"], environ)) == (4, 3, 1)
    assert seed_limit_workers(load([first, second], ["seed=4", "limit=4"], environ, limit=5)) == (4, 5, 1)


def test_tables_are_merged_and_lists_replaced(folder: Path) -> None:
    first = written(folder, 'sources = ["pypi:a", "pypi:b"]\n[verdict]\ngold_runs = 5')
    second = written(folder, 'sources = ["pypi:c"]\n[verdict]\nbaseline_runs = 4', "b.toml")
    settings = load([first, second], ["verdict.pids=100"], {})
    assert [source.spec for source in settings.sources] == ["pypi:c"]
    assert settings.verdict.model_fields_set == {"gold_runs", "baseline_runs", "pids"}


def test_the_cache_variable_counts_more_than_a_file_and_less_than_an_option(folder: Path) -> None:
    path, environ = written(folder, 'cache = "of-the-file"'), {"EXCISE_CACHE": "of-the-shell"}
    assert load([path], environ={}).cache == folder / "of-the-file"
    assert load([path], environ={"EXCISE_CACHE": ""}).cache == folder / "of-the-file"
    assert load([path], environ=environ).cache == Path.cwd() / "of-the-shell"
    assert load([path], environ=environ, cache=Path("mine")).cache == Path.cwd() / "mine"


def test_paths_of_a_file_are_seen_from_its_folder_and_all_others_from_here(folder: Path) -> None:
    path = written(folder, 'out = "x/out"\ncache = "../cache"')
    settings = load([path], environ={})
    assert (settings.out, settings.cache) == (folder / "x" / "out", folder.parent / "cache")
    assert load([path], ["out=../y"], {}).out == folder.parent / "y"
    assert load([path], ["out=2024"], {}).out == Path.cwd() / "2024"
    assert load([path], environ={"EXCISE_OUT": "y"}).out == Path.cwd() / "y"
    assert load([path], environ={}, out=Path("y")).out == Path.cwd() / "y"
    assert load(environ={}).out == Path.cwd() / "excise-out"
    assert load([written(folder, 'out = "~/sets"')], environ={}).out == Path.home() / "sets"


def test_the_same_file_gives_the_same_paths_from_everywhere(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(folder, 'out = "o"\nsources = ["./x", "../y"]')
    seen = []
    for directory, name in ((folder, "a.toml"), (folder.parent, "sets/a.toml"), (Path.cwd(), "../sets/a.toml")):
        monkeypatch.chdir(directory)
        settings = load([Path(name)], environ={})
        seen.append((settings.out, *(source.spec for source in settings.sources)))
    assert seen == [(folder / "o", f"{folder}/x", f"{folder.parent}/y")] * 3
    assert path.exists()


@pytest.mark.parametrize(
    ("spec", "seen"),
    [
        ("./x", "{folder}/x"),
        ("../x@v1", "{parent}/x@v1"),
        ("../../x", "{above}/x"),
        (".", "{folder}"),
        ("..", "{parent}"),
        ("some/x-1.0.tar.gz", "{folder}/some/x-1.0.tar.gz"),
        ("./a:b", "{folder}/a:b"),
        ("git+./x@main", "git+{folder}/x@main"),
        ("dir:x", "dir:{folder}/x"),
        ("archive:../x.zip", "archive:{parent}/x.zip"),
        ("/abs/x", "/abs/x"),
        ("~/x", "~/x"),
        ("dir:/abs/x", "dir:/abs/x"),
        ("x", "x"),
        ("pypi:uvicorn[standard]==1.2", "pypi:uvicorn[standard]==1.2"),
        ("https://example.org/me/app.git@main", "https://example.org/me/app.git@main"),
        ("git+ssh://git@example.org/me/app", "git+ssh://git@example.org/me/app"),
        ("git@example.org:me/app.git", "git@example.org:me/app.git"),
    ],
)
def test_local_sources_of_a_file_are_seen_from_its_folder(folder: Path, spec: str, seen: str) -> None:
    expected = seen.format(folder=folder, parent=folder.parent, above=folder.parent.parent)
    short, long = written(folder, f'sources = ["{spec}"]'), written(folder, f'[[sources]]\nspec = "{spec}"', "b.toml")
    for path in (short, long):
        assert [source.spec for source in load([path], environ={}).sources] == [expected]
    assert [source.spec for source in load(environ={}, overrides=[f'sources=["{spec}"]']).sources] == [spec]
    assert [source.spec for source in with_sources(load(environ={}), [spec]).sources] == [spec]


def test_sources_of_the_command_line_come_after_those_of_the_files(folder: Path) -> None:
    settings = with_sources(load([written(folder, 'sources = ["pypi:a"]')], environ={}), ["./b"])
    assert [source.spec for source in settings.sources] == ["pypi:a", "./b"]
    with pytest.raises(ConfigError, match="spec is empty"):
        with_sources(settings, [""])


def test_a_cutoff_may_be_written_without_quotes(folder: Path) -> None:
    path = written(folder, "[verdict]\ncutoff = 2024-05-31")
    assert load([path], environ={}).verdict.cutoff == "2024-05-31"
    assert load([path], ["verdict.cutoff=2023-01-01"], {}).verdict.cutoff == "2023-01-01"
    assert load([path], ["verdict.cutoff="], {}).verdict.cutoff == ""


def test_the_default_cache_is_absolute(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXCISE_CACHE", "c")
    assert default_cache() == Path.cwd() / "c"
    monkeypatch.delenv("EXCISE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    assert default_cache() == folder / "excise"


def test_given_settings_mean_the_same_elsewhere(folder: Path) -> None:
    environ = {"EXCISE_OUT": "o", "EXCISE_CACHE": "", "EXCISE_SEED": "7", "EXCISE_PYTHON": "python3", "HOME": "/h"}
    assert given_settings(environ) == {"EXCISE_OUT": str(Path.cwd() / "o"), "EXCISE_SEED": "7"}
