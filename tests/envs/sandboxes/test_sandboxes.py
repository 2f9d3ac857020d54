"""What every sandbox guarantees: bubblewrap as this user, without control groups, as an ordinary user; and Docker."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

Probe = Callable[[str], dict]


def test_nothing_of_the_caller_is_inside(probe: Probe) -> None:
    lines = probe("identity")["stdout"].splitlines()
    assert lines[:4] == ["1000", "CapEff:\t0000000000000000", "NoNewPrivs:\t1", "sandbox"]
    assert [line.partition("=")[0] for line in lines[4:]] == ["HOME", "LC_ALL", "PATH", "PWD"]


def test_no_signal_is_ignored_or_blocked_from_birth(probe: Probe) -> None:
    none = "0" * 16
    assert probe("signals")["masks"] == ["SigBlk:", none, "SigIgn:", none]


def test_the_network_is_unreachable(probe: Probe) -> None:
    *attempts, names, interfaces = probe("network")["stdout"].splitlines()
    assert all(line.startswith("refused") for line in attempts)
    assert (names, interfaces) == ("no names", "['lo']")


def test_host_files_are_unreadable(probe: Probe) -> None:
    assert probe("host_files")["stdout"].replace("LC_CTYPE=C.UTF-8\0", "") == ""


def test_writes_stay_in_the_session(probe: Probe) -> None:
    found = probe("writes")
    assert found["stdout"].split() == found["targets"]
    assert (found["layer"], found["text"]) == (["a.txt"], "first\n")


def test_the_kernel_cannot_be_configured(probe: Probe) -> None:
    found = probe("proc_sys")
    assert found["stdout"] == ""
    assert found["same"]


def test_a_fork_bomb_is_contained(probe: Probe) -> None:
    found = probe("fork_bomb")
    children, error = found["polite"]["stdout"].split()
    assert 30 <= int(children) <= 43
    assert error == "11"
    assert found["rude"]["wall_s"] < 5
    assert found["after"]["stdout"] == "well\n"


def test_memory_is_limited_for_all_processes_together(probe: Probe) -> None:
    found = probe("memory_hog")
    assert (found["one"]["worker"], found["one"]["rc"]) == ("oom", -9)
    assert found["together"]["worker"] == "oom"
    assert found["after"] | {"worker": "ok", "stdout": "well\n"} == found["after"]


def test_a_full_disk_spares_the_host_and_the_report(probe: Probe, host: str) -> None:
    found = probe("disk_filler")
    sizes = [int(line) for line in found["fill"]["stdout"].splitlines() if line.isdigit()]
    if host == "docker":  # a tmpfs for each place, and an end to the command when they hold too much together
        assert found["fill"]["worker"] == "oom"
        assert max(sizes) <= 16 << 20
    else:
        assert sum(sizes[:4]) <= 16 << 20
        assert 0 < sizes[4] <= 8 << 20
    assert found["report"]["stdout"] == "report\n"
    assert found["many"]["rc"] != 0, "empty files are limited too"


def test_output_is_capped_while_the_command_runs_on(probe: Probe) -> None:
    found = probe("log_flood")
    assert (found["ended"]["rc"], found["ended"]["num_stdout"]) == (3, 1000)
    assert (found["endless"]["worker"], found["endless"]["num_stdout"]) == ("timeout", 1000)


def test_daemons_are_dead_when_exec_returns(probe: Probe) -> None:
    found = probe("daemons")
    assert (found["stdout"], found["left"]) == ("started\n", 0)


def test_a_timeout_is_kept_within_a_second(probe: Probe) -> None:
    found = probe("timeout")
    for run in found["runs"]:
        assert run["worker"] == "timeout"
        assert 1.0 <= run["seconds"] < 2.0
        assert run["left"] == 0
    assert found["after"]["stdout"] == "well\n"


def test_links_lead_nowhere(probe: Probe) -> None:
    found = probe("links")
    assert (found["edited"], found["made"], found["put"]) == ("edited", "made", "put")
    assert found["gone"] == found["get"] == "FileNotFoundError"
    for name in ("put through", "put outside", "edit through", "edit up", "edit outside", "edit fixed"):
        assert found[name] == "SandboxError", name
    assert (found["outside"], found["layer"]) == (["untouched"], ["a.txt", "file", "folder"])


def test_snapshots_are_layers_without_set_id_bits(probe: Probe) -> None:
    found = probe("snapshots")
    assert found["modes"]["n.txt"] == "0o777"
    assert "pipe" not in found["modes"]
    assert found["link"] == "/etc/shadow"
    assert found["again"]["stdout"].split() == [".", "./deep", "./deep/c", "./l", "./n.txt", "new"]
    assert found["owner"]


def test_nothing_is_left_behind(probe: Probe) -> None:
    found = probe("traces")
    assert found["existed"]
    assert (found["left"], found["stages"]) == ([], 0)


def test_cpu_time_of_grandchildren_is_counted(probe: Probe) -> None:
    found = probe("accounting")
    assert 0.5 < found["cpu_s"] < 3
    assert found["peak_bytes"] > 50 << 20


def test_sessions_fork_and_report_their_changes(probe: Probe, tmp_path: Path) -> None:
    found = probe("forks")
    assert found["ours"].split() == ["./a.txt", "./bin.dat", "./new.txt", "first", "more"]
    assert found["theirs"].split() == ["./bin.dat", "./new.txt", "./other", "n"]
    assert (found["wrong"], found["left"]) == ("SandboxError", [])
    (tmp_path / "a.txt").write_text("first\nmore\n")
    subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=found["patch"], text=True, check=True)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"other": "other\n"}


def test_cpu_time_is_limited_or_the_limit_is_refused(probe: Probe) -> None:
    found = probe("cpu_hog")
    if not found["given"]:
        assert found["refused"] == "SandboxError"
    else:
        assert (found["rc"], found["worker"]) == (0, "ok")
        assert found["cpu_s"] < 0.75 * found["wall_s"]


# ------------------------------------------------------------------------------------ escape attempts
UNSUPPORTED = {"vsock", "packet", "alg", "netfilter", "xfrm", "vsock pair"}


def test_the_calls_that_exploits_begin_with_are_refused(probe: Probe) -> None:
    found = probe("syscalls")
    assert found["rc"] == 0
    answers = found["answers"]
    assert len(answers) > 35
    assert answers.pop("clone3") == "ENOSYS", "glibc then calls clone, whose flags can be seen"
    assert {name for name, answer in answers.items() if answer == "EAFNOSUPPORT"} == UNSUPPORTED
    assert {answer for name, answer in answers.items() if name not in UNSUPPORTED} == {"EPERM"}


def test_other_calling_conventions_are_no_way_around_the_filter(probe: Probe) -> None:
    found = probe("other_architecture")
    assert found["i386"]["stdout"] == ""
    assert found["x32"]["stdout"] == "ENOSYS\n"


def test_ordinary_test_suites_notice_nothing(probe: Probe) -> None:
    found = probe("everyday")
    assert (found["stdout"], found["rc"]) == ("True 16\n", 0), found["stderr"]


def test_the_first_process_is_out_of_reach(probe: Probe) -> None:
    found = probe("first_process")
    assert found["tried"]["stdout"] == "['0', '1', '2']\n"
    assert found["after"]["stdout"] == "well\n"


def test_signals_reach_nobody_else(probe: Probe) -> None:
    found = probe("others_signalled")
    assert found["all"]["stdout"] == "done\n"
    assert found["other"]["stdout"] == "well\n"
    assert found["bystander"]


def test_hard_and_symbolic_links_lead_nowhere(probe: Probe) -> None:
    found = probe("hard_links")
    assert found["done"]["stdout"] == ""
    assert found["text"] == "hiddenfirst\n"
    assert found["plain"] == ["x"]
    assert set(found["kept"].values()) == {True}


def test_a_crash_leaves_no_core(probe: Probe) -> None:
    found = probe("core_dumps")
    assert found["rc"] == -11
    assert found["left"].split()[:7] == ["/tmp:", "Max", "core", "file", "size", "0", "0"]


def test_set_id_programs_give_nothing(probe: Probe) -> None:
    assert probe("set_id")["stdout"] == "1000\n"


def test_services_of_the_host_are_out_of_reach(probe: Probe) -> None:
    found = probe("sockets_of_the_host")
    assert (found["stdout"], found["rc"]) == ("", 0)


def test_a_sparse_file_does_not_fill_the_host(probe: Probe) -> None:
    found = probe("sparse_files")
    assert found["made"]["stdout"] == "made\n"
    assert (found["refused"], found["blocks"]) == ("SandboxError", 0)
    assert found["seen"] == "y\n"


def test_streams_cannot_hang_a_session(probe: Probe) -> None:
    found = probe("flood_of_input")
    assert (found["deaf"]["rc"], found["shut"]["rc"], found["handed"]["rc"], found["after"]["rc"]) == (0, 7, 5, 0)
    assert found["handed"]["wall_s"] < 10


def test_threads_and_files_are_limited(probe: Probe) -> None:
    found = probe("many_at_once")
    assert 40 <= int(found["threads"]["stdout"]) <= 64
    assert int(found["files"]["stdout"]) <= 4096
    assert found["after"]["stdout"] == "well\n"


def test_a_fork_bomb_ends_at_its_timeout(probe: Probe) -> None:
    """A hundred processes are dying when it is over, which takes a busy machine a moment."""
    found = probe("bomb_at_the_end")
    assert found["done"]["worker"] == "timeout"
    assert found["seconds"] < 30.0
    assert int(found["after"]["stdout"]) <= 5


def test_a_session_can_be_closed_by_another_thread(probe: Probe) -> None:
    assert probe("closed_twice") == {"ended": True, "closed": "SandboxError"}
