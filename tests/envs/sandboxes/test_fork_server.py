"""Sandboxes with a fork server: a session in one is as fresh as in a new sandbox, and a crash costs only itself."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

Probe = Callable[[str], dict]
HOSTS = ["bubblewrap", "bubblewrap without groups", "bubblewrap as an ordinary user"]
pytestmark = pytest.mark.parametrize("host", HOSTS, indirect=True)
FORKED, FRESH = "True\n", "False\n"


def test_a_forked_process_cannot_be_told_from_a_fresh_one(probe: Probe) -> None:
    found = probe("fork_descriptions")
    forked, again, fresh = (json.loads(found[name]) for name in ("forked", "again", "fresh"))
    assert found["ask"] == FORKED
    assert forked == again
    assert forked == fresh
    assert (forked["file"], forked["environ"]["EXTRA"]) == ("edited\n", "yes")


def test_nothing_of_a_session_is_seen_by_the_next(probe: Probe) -> None:
    found = probe("fork_traces")
    assert found["runs"] == [[True, [], 2]] * 3, "forked; no marks; two processes, the server and itself"
    assert found["left"] == 0


def test_a_run_that_kills_or_hangs_costs_only_itself(probe: Probe) -> None:
    found = probe("fork_kills")
    assert (found["killed"]["rc"], found["killed"]["worker"]) == (-9, "ok")
    assert found["after"]["stdout"] == FORKED
    assert found["late"]["worker"] == "timeout"
    assert (found["second"]["stdout"], found["next"]["stdout"]) == (FRESH, FORKED)


def test_a_run_out_of_memory_costs_only_itself(probe: Probe) -> None:
    found = probe("fork_memory")
    assert (found["hog"]["worker"], found["hog"]["rc"]) == ("oom", -9)
    assert found["before"]["stdout"] == found["after"]["stdout"] == FORKED


def test_a_sandbox_with_leftovers_in_the_kernel_is_not_used_again(probe: Probe) -> None:
    assert probe("fork_leftovers") == {"found": [["True\n", "0\n"]] * 3, "next": FORKED}


def test_processes_that_the_server_spares_are_killed(probe: Probe) -> None:
    assert probe("fork_survivors") == {"rc": 0, "left": 0}


def test_ctrl_c_ends_the_sandbox_of_the_run(probe: Probe) -> None:
    assert probe("fork_interrupted") == {"raised": "KeyboardInterrupt", "next": FORKED}


def test_a_missing_layer_is_an_error_of_the_sandbox(probe: Probe) -> None:
    assert probe("fork_missing_layer") == {"raised": "SandboxError"}


def test_a_checkout_that_hides_imported_modules_gets_fresh_processes(probe: Probe) -> None:
    found = probe("fork_shadowing")
    assert found["first"]["stdout"] == found["second"]["stdout"] == FRESH
    assert found["next"] == FORKED


def test_a_command_that_cannot_serve_runs_as_always(probe: Probe) -> None:
    found = probe("fork_unfit")
    assert found["done"]["stdout"] == "well\n"
    assert found["remembered"] == 1, "it is tried once"


def test_a_server_that_answers_nonsense_is_an_error_of_its_sandbox(probe: Probe) -> None:
    assert probe("fork_misbehaving") == {"found": ["SandboxError"], "next": FORKED}


def test_a_server_that_was_killed_while_it_waited_is_replaced(probe: Probe) -> None:
    assert probe("fork_ended_while_waiting") == {"first": FORKED, "second": FORKED}


def test_sessions_are_not_forked_where_each_needs_a_new_server(probe: Probe) -> None:
    assert probe("fork_connections") == {"5000": [FORKED] * 3 + [FRESH], "0": [FORKED] * 4}


def test_other_commands_see_the_same_files(probe: Probe) -> None:
    found = probe("fork_other_commands")
    assert (found["text"], found["found"]["stdout"], found["next"]) == ("x", "put False\n", FORKED)


def test_few_sandboxes_wait_and_none_is_left(probe: Probe) -> None:
    assert probe("fork_waiting") == {"count": 6, "alive": []}


def test_a_layer_that_was_made_anew_is_another_one(probe: Probe) -> None:
    assert probe("fork_replaced_layer") == {"first": "first\n\n", "second": "second\n\n"}
