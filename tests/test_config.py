"""Settings: precedence of the origins, resolution of paths, and errors for invalid values."""

from __future__ import annotations

from pathlib import Path

import pytest

from excise.config import Settings, default_cache, environment_settings, load, specs_in, with_sources
from excise.errors import ConfigError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for files, with the working directory beside it."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    (tmp_path / "sets").mkdir()
    return tmp_path / "sets"


def write_toml(folder: Path, text: str, name: str = "a.toml") -> Path:
    (folder / name).write_text(text)
    return folder / name


@pytest.mark.parametrize(
    ("text", "message"),
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
        (
            '[verdict]\nvisibility = "half"',
            r"verdict\.visibility: .*'tests', 'sample_tests', 'docstring', 'signature' or 'behav",
        ),
        ('[verdict]\ncutoff = "yesterday"', r"verdict\.cutoff: write a date"),
        ("out = 5", r"out: write a path"),
        ("limit = ", r"not valid TOML"),
    ],
)
def test_a_broken_file_is_named_with_the_key_and_the_remedy(folder: Path, text: str, message: str) -> None:
    path = write_toml(folder, text)
    with pytest.raises(ConfigError, match=rf"{path}: {message}"):
        load([write_toml(folder, "limit = 3", "good.toml"), path], environ={})


@pytest.mark.parametrize(
    ("overrides", "message"),
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
def test_a_broken_override_is_named(folder: Path, overrides: list[str], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load([write_toml(folder, "limit = 4")], overrides, {})
    assert str(caught.value).startswith(message)


def test_a_broken_variable_and_a_broken_option_are_named() -> None:
    with pytest.raises(ConfigError, match=r"^EXCISE_VERDICT__GOLD_RUNS: verdict\.gold_runs: "):
        load(environ={"EXCISE_VERDICT__GOLD_RUNS": "none"})
    with pytest.raises(ConfigError, match=r"^--limit: limit: "):
        load(environ={}, limit=0)


def test_files_then_environment_then_set_then_options(folder: Path) -> None:
    first, second = write_toml(folder, "seed = 1\nlimit = 1\nworkers = 1"), write_toml(folder, "seed = 2", "b.toml")
    environ = {"EXCISE_SEED": "3", "EXCISE_LIMIT": "3"}

    def seed_limit_workers(settings: Settings) -> tuple[int, int | None, int]:
        return settings.seed, settings.limit, settings.workers

    assert seed_limit_workers(load([first, second], [], {})) == (2, 1, 1)
    assert seed_limit_workers(load([first, second], [], environ)) == (3, 3, 1)
    assert seed_limit_workers(load([first, second], ["seed=4"], environ)) == (4, 3, 1)
    assert seed_limit_workers(load([first, second], ["seed=4", "limit=4"], environ, limit=5)) == (4, 5, 1)


def test_tables_are_merged_and_lists_replaced(folder: Path) -> None:
    first = write_toml(folder, 'sources = ["pypi:a", "pypi:b"]\n[verdict]\ngold_runs = 5')
    second = write_toml(folder, 'sources = ["pypi:c"]\n[verdict]\nbaseline_runs = 4', "b.toml")
    settings = load([first, second], ["verdict.pids=100"], {})
    assert [source.spec for source in settings.sources] == ["pypi:c"]
    assert settings.verdict.model_fields_set == {"gold_runs", "baseline_runs", "pids"}


def test_the_cache_variable_overrides_files_and_is_overridden_by_options(folder: Path) -> None:
    path, environ = write_toml(folder, 'cache = "of-the-file"'), {"EXCISE_CACHE": "of-the-shell"}
    assert load([path], environ={}).cache == folder / "of-the-file"
    assert load([path], environ={"EXCISE_CACHE": ""}).cache == folder / "of-the-file"
    assert load([path], environ=environ).cache == Path.cwd() / "of-the-shell"
    assert load([path], environ=environ, cache=Path("mine")).cache == Path.cwd() / "mine"


def test_paths_in_a_file_are_relative_to_its_folder(folder: Path) -> None:
    path = write_toml(folder, 'out = "x/out"\ncache = "../cache"')
    settings = load([path], environ={})
    assert (settings.out, settings.cache) == (folder / "x" / "out", folder.parent / "cache")
    assert load([path], ["out=../y"], {}).out == folder.parent / "y"
    assert load([path], ["out=2024"], {}).out == Path.cwd() / "2024"
    assert load([path], environ={"EXCISE_OUT": "y"}).out == Path.cwd() / "y"
    assert load([path], environ={}, out=Path("y")).out == Path.cwd() / "y"
    assert load(environ={}).out == Path.cwd() / "excise-out"
    assert load([write_toml(folder, 'out = "~/sets"')], environ={}).out == Path.home() / "sets"


def test_paths_in_a_file_do_not_depend_on_the_working_directory(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_toml(folder, 'out = "o"\nsources = ["./x", "../y"]')
    resolved = []
    for directory, name in ((folder, "a.toml"), (folder.parent, "sets/a.toml"), (Path.cwd(), "../sets/a.toml")):
        monkeypatch.chdir(directory)
        settings = load([Path(name)], environ={})
        resolved.append((settings.out, *(source.spec for source in settings.sources)))
    assert resolved == [(folder / "o", f"{folder}/x", f"{folder.parent}/y")] * 3
    assert path.exists()


@pytest.mark.parametrize(
    ("spec", "resolved"),
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
def test_local_sources_in_a_file_are_relative_to_its_folder(folder: Path, spec: str, resolved: str) -> None:
    expected = resolved.format(folder=folder, parent=folder.parent, above=folder.parent.parent)
    short, long = (
        write_toml(folder, f'sources = ["{spec}"]'),
        write_toml(folder, f'[[sources]]\nspec = "{spec}"', "b.toml"),
    )
    for path in (short, long):
        assert [source.spec for source in load([path], environ={}).sources] == [expected]
    assert [source.spec for source in load(environ={}, overrides=[f'sources=["{spec}"]']).sources] == [spec]
    assert [source.spec for source in with_sources(load(environ={}), [spec]).sources] == [spec]


def test_sources_of_the_command_line_come_after_those_of_the_files(folder: Path) -> None:
    settings = with_sources(load([write_toml(folder, 'sources = ["pypi:a"]')], environ={}), ["./b"])
    assert [source.spec for source in settings.sources] == ["pypi:a", "./b"]
    with pytest.raises(ConfigError, match="spec is empty"):
        with_sources(settings, [""])


@pytest.mark.parametrize("spec", ["./b", "dir:/x", "x-1.0.tar.gz", "git+https://example.org/x@v1", "debsrc:x=1-2"])
def test_a_source_may_name_its_subfolder_like_pip(spec: str) -> None:
    [source] = with_sources(load(environ={}), [f"{spec}#subdirectory=crates/a"]).sources
    assert (source.spec, source.subdir, source.name) == (spec, "crates/a", f"{spec}#subdirectory=crates/a")


def test_a_cutoff_may_be_a_toml_date(folder: Path) -> None:
    path = write_toml(folder, "[verdict]\ncutoff = 2024-05-31")
    assert load([path], environ={}).verdict.cutoff == "2024-05-31"
    assert load([path], ["verdict.cutoff=2023-01-01"], {}).verdict.cutoff == "2023-01-01"
    assert load([path], ["verdict.cutoff="], {}).verdict.cutoff == ""


def test_the_default_cache_is_absolute(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXCISE_CACHE", "c")
    assert default_cache() == Path.cwd() / "c"
    monkeypatch.delenv("EXCISE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    assert default_cache() == folder / "excise"


def test_environment_settings_are_valid_in_any_folder(folder: Path) -> None:
    environ = {"EXCISE_OUT": "o", "EXCISE_CACHE": "", "EXCISE_SEED": "7", "EXCISE_PYTHON": "python3", "HOME": "/h"}
    assert environment_settings(environ) == {"EXCISE_OUT": str(Path.cwd() / "o"), "EXCISE_SEED": "7"}


def test_a_file_of_sources_has_one_a_line(tmp_path: Path) -> None:
    path = tmp_path / "specs.txt"
    path.write_text("# projects\npypi:toolz==1.1.0  # pinned\n\n./local/x\nhttps://host/owner/name@v1#subdirectory=a\n")
    assert specs_in(path) == ["pypi:toolz==1.1.0", f"{tmp_path}/local/x", "https://host/owner/name@v1#subdirectory=a"]
    path.write_text("# nothing\n")
    with pytest.raises(ConfigError, match=r"specs\.txt names no source"):
        specs_in(path)
    with pytest.raises(ConfigError, match="cannot be read"):
        specs_in(tmp_path / "missing")
