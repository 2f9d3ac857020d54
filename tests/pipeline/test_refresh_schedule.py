"""Schedules, with small real programs in place of systemctl and crontab."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from excise.config import load
from excise.errors import ConfigError
from excise.pipeline.services.refresh_schedule import (
    cron_line,
    folder_of,
    install,
    parse_when,
    password_variables,
    schedule_name,
    schedule_text,
    scheduled_environment,
    systemd_units,
    this_program,
    uninstall,
)

EXE = Path("/opt/my tools/100%/$bin/excise")

SYSTEMCTL = """#!/bin/sh
echo "$*" >> "$LOG"
case "$*" in *is-system-running*) echo "$SYSTEMD_STATE";; *"enable"*) exit "${ENABLE_EXIT:-0}";; esac
"""
CRONTAB = """#!/bin/sh
case "$1" in
  -l) if [ -f "$TABLE" ]; then cat "$TABLE"; else echo "no crontab for me" >&2; exit 1; fi;;
  -) cat > "$TABLE.new" && mv "$TABLE.new" "$TABLE"; echo written >> "$LOG";;
esac
"""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A machine with an empty HOME and only the programs that a test adds."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", "cat", "mv"):
        (programs / name).symlink_to(str(shutil.which(name)))
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("LOG", str(tmp_path / "log"))
    monkeypatch.setenv("TABLE", str(tmp_path / "table"))
    monkeypatch.setenv("SYSTEMD_STATE", "running")
    (tmp_path / "my set.toml").write_text("")

    def add(name: str, text: str) -> None:
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)

    return add


@pytest.mark.parametrize(
    ("text", "calendar", "cron"),
    [
        ("03:30", "*-*-* 03:30:00", "30 3 * * *"),
        ("Sun 3:05", "Sun *-*-* 03:05:00", "5 3 * * 0"),
        ("saturday 23:59", "Sat *-*-* 23:59:00", "59 23 * * 6"),
        ("hourly", "*-*-* *:00:00", "0 * * * *"),
        ("daily", "*-*-* 00:00:00", "0 0 * * *"),
        ("weekly", "Mon *-*-* 00:00:00", "0 0 * * 1"),
    ],
)
def test_times(text: str, calendar: str, cron: str) -> None:
    assert parse_when(text).calendar() == calendar
    assert parse_when(text).cron() == cron


@pytest.mark.parametrize("text", ["", "25:00", "12:60", "Xyz 12:00", "0 3 * * *", "03:30; reboot"])
def test_invalid_times_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is no time"):
        parse_when(text)


def test_units_escape_paths() -> None:
    units = systemd_units(Path('/data/5% "off"/my set.toml'), "03:30", EXE, {"PATH": "/a b:/c%d$e"})
    service, timer = units.values()
    assert '"/opt/my tools/100%%/$$bin/excise" "refresh" "/data/5%% \\"off\\"/my set.toml"' in service
    assert 'WorkingDirectory=/data/5%% "off"\n' in service
    assert 'Environment="PATH=/a b:/c%%d$e"' in service
    assert "OnCalendar=*-*-* 03:30:00" in timer
    assert [Path(name).suffix for name in units] == [".service", ".timer"]


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="needs systemd-analyze")
def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    folder = tmp_path / "5% of it"
    folder.mkdir()
    units = systemd_units(folder / "my set.toml", "Sun 03:30", folder / "excise", {"PATH": "/usr/bin:/c%d"})
    for name, text in units.items():
        (tmp_path / name).write_text(text)
    paths = [str(tmp_path / name) for name in units]
    done = subprocess.run(["systemd-analyze", "verify", *paths], capture_output=True, text=True, check=False)
    ours = [line for line in done.stderr.splitlines() if "excise-refresh" in line]
    assert ours == []


def test_a_path_with_a_line_break_is_refused() -> None:
    for make in (systemd_units, cron_line):
        with pytest.raises(ConfigError, match="control characters"):
            make(Path("/a\nExecStart=b.toml"), "03:30", EXE)


def test_the_cron_line_runs_what_it_should(tmp_path: Path) -> None:
    folder = tmp_path / 'it\'s 100% "mine" $HOME'
    folder.mkdir()
    program = folder / "excise"
    program.write_text('#!/bin/sh\nprintf "%s|" "$PWD" "$@" "$VALUE"\n')
    program.chmod(0o755)
    line = cron_line(folder / "my set.toml", "03:30", program, {"VALUE": "50%"})
    command = line.split(" ", 5)[5]
    assert "%" not in command.replace(r"\%", "")
    as_cron_runs_it = command.replace(r"\%", "%")
    done = subprocess.run(["sh", "-c", as_cron_runs_it], capture_output=True, text=True, check=True)
    assert done.stdout == f"{folder}|refresh|{folder / 'my set.toml'}|50%|"


def test_systemd_install_is_idempotent_and_can_be_undone(machine, tmp_path: Path) -> None:
    machine("systemctl", SYSTEMCTL)
    config, units = tmp_path / "my set.toml", tmp_path / "units"
    assert "Installed" in install(config, "03:30", EXE, units)
    first = {path.name: path.read_text() for path in units.iterdir()}
    install(config, "03:30", EXE, units)
    assert {path.name: path.read_text() for path in units.iterdir()} == first
    install(config, "04:00", EXE, units)
    assert len(list(units.iterdir())) == 2
    assert "04:00" in (units / f"{schedule_name(config)}.timer").read_text()
    assert f"enable --now {schedule_name(config)}.timer" in (tmp_path / "log").read_text()
    assert "Removed" in uninstall(config, units)
    assert list(units.iterdir()) == []
    assert "There is no schedule" in uninstall(config, units)


def test_each_configuration_has_its_own_schedule(machine, tmp_path: Path) -> None:
    machine("systemctl", SYSTEMCTL)
    (tmp_path / "my-set.toml").write_text("")
    install(tmp_path / "my set.toml", "03:30", EXE, tmp_path / "units")
    install(tmp_path / "my-set.toml", "03:30", EXE, tmp_path / "units")
    assert len(list((tmp_path / "units").iterdir())) == 4


def test_a_failing_systemctl_is_reported(machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine("systemctl", SYSTEMCTL)
    monkeypatch.setenv("ENABLE_EXIT", "1")
    with pytest.raises(ConfigError, match=r"systemctl.*enable.*failed"):
        install(tmp_path / "my set.toml", "03:30", EXE, tmp_path / "units")


def test_cron_where_systemd_does_not_run(machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine("systemctl", SYSTEMCTL)
    machine("crontab", CRONTAB)
    monkeypatch.setenv("SYSTEMD_STATE", "offline")
    config, table = tmp_path / "my set.toml", tmp_path / "table"
    table.write_text("# mine\n0 1 * * * backup 100\\%\n")
    install(config, "03:30", EXE)
    install(config, "03:30", EXE)
    install(config, "Sun 04:00", EXE)
    mine, backup, ours = table.read_text().splitlines()
    assert (mine, backup) == ("# mine", "0 1 * * * backup 100\\%")
    assert ours == cron_line(config, "Sun 04:00", EXE, scheduled_environment())
    assert (tmp_path / "log").read_text().count("written") == 2, "an equal line is not written again"
    assert uninstall(config) == "Removed the line in the crontab."
    assert table.read_text() == "# mine\n0 1 * * * backup 100\\%\n"


def test_cron_starts_from_no_crontab(machine, tmp_path: Path) -> None:
    machine("crontab", CRONTAB)
    install(tmp_path / "my set.toml", "daily", EXE)
    assert (tmp_path / "table").read_text().count("\n") == 1


def test_a_crontab_that_cannot_be_read_is_never_overwritten(machine, tmp_path: Path) -> None:
    machine("crontab", '#!/bin/sh\n[ "$1" = - ] && echo written >> "$LOG"\necho "you are not allowed" >&2; exit 1\n')
    with pytest.raises(ConfigError, match=r"(?s)not allowed.*by hand:\n30 3 "):
        install(tmp_path / "my set.toml", "03:30", EXE)
    assert not (tmp_path / "log").exists()


def test_neither_systemd_nor_cron(machine, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="neither systemd nor cron") as caught:
        install(tmp_path / "my set.toml", "03:30", EXE)
    line = str(caught.value).splitlines()[-1]
    assert "refresh" in shlex.split(line)


def test_a_missing_configuration(machine, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        install(tmp_path / "missing.toml", "03:30", EXE)


def test_the_environment_that_is_carried() -> None:
    assert scheduled_environment({"PATH": "/bin", "SECRET": "x", "EXCISE_CACHE": ""}) == {"PATH": "/bin"}


def test_settings_of_the_environment_are_carried_and_mean_the_same_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    environ = {"EXCISE_CACHE": "c", "EXCISE_OUT": "../o", "EXCISE_VERDICT__GOLD_RUNS": "5", "EXCISE_PYTHON": "p"}
    assert scheduled_environment(environ) == {
        "EXCISE_CACHE": str(tmp_path / "c"),
        "EXCISE_OUT": str(tmp_path.parent / "o"),
        "EXCISE_VERDICT__GOLD_RUNS": "5",
    }


def test_index_settings_are_carried_without_passwords() -> None:
    plain = {"HTTPS_PROXY": "http://proxy:3128", "UV_DEFAULT_INDEX": "https://index.example.org/simple"}
    secret = {"https_proxy": "http://me:secret@proxy:3128", "PIP_INDEX_URL": "https://token@index.example.org"}
    assert scheduled_environment(plain | secret | {"TOKEN": "x"}) == plain
    assert password_variables(plain | secret) == ["PIP_INDEX_URL", "https_proxy"]
    assert password_variables(plain | secret, key="MODEL_KEY") == ["MODEL_KEY", "PIP_INDEX_URL", "https_proxy"]


def test_a_value_with_a_line_break_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"EXCISE_SOURCES=.*cannot be scheduled"):
        scheduled_environment({"EXCISE_SOURCES": '["a",\n"b"]'})


def test_it_runs_in_the_folder_of_a_manual_run(machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.delenv("EXCISE_OUT", raising=False)
    config = tmp_path / "my set.toml"
    for text, folder in (("", tmp_path / "here"), ('out = "sets/x"', tmp_path)):
        config.write_text(text)
        by_hand = load([config])
        assert folder_of(config, by_hand) == folder
        command = cron_line(config, "03:30", EXE, scheduled_environment(), folder_of(config, by_hand))
        assert f"cd {folder} &&" in command
        assert f"WorkingDirectory={folder}\n" in schedule_text(config, "03:30", EXE, folder)
        monkeypatch.chdir(folder)
        assert load([config]).out == by_hand.out


def test_the_shown_units_are_the_installed_ones(machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine("systemctl", SYSTEMCTL)
    monkeypatch.setenv("EXCISE_SEED", "7")
    config = tmp_path / "my set.toml"
    install(config, "03:30", EXE, tmp_path / "units", tmp_path)
    text = schedule_text(config, "03:30", EXE, tmp_path)
    for unit in (tmp_path / "units").iterdir():
        assert f"# {unit.name}\n{unit.read_text()}" in text
    assert 'Environment="EXCISE_SEED=7"' in text


def test_a_configuration_has_one_schedule_however_it_is_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    units = systemd_units(tmp_path / "a.toml", "03:30", EXE)
    assert systemd_units(Path("../a.toml"), "03:30", EXE) == units


def test_the_program_that_is_scheduled_can_be_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/somewhere/pipeline/cli.py", "schedule"])
    assert this_program() == Path(sys.executable).with_name("excise")
    monkeypatch.setattr(sys, "argv", ["/opt/bin/excise", "schedule"])
    assert this_program() == Path("/opt/bin/excise")
