"""The viewer in a real browser: reading, keys, dark mode, a phone, no JavaScript, hostile sets, live updates."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import expect

from excise.datasets.queries.attempts import merge_rows, write_attempt
from excise.datasets.queries.imports import ImportRow, write_import
from excise.datasets.queries.refreshes import FailureCount, ReverifiedTask, SourceReport, StageCost, write_report
from excise.datasets.queries.rollouts import write_rollouts
from excise.datasets.taskset import TaskSet
from excise.datasets.viewer.loaded_set import LoadedSet
from excise.datasets.viewer.pages import LISTS, Site
from excise.datasets.viewer.static_copy import write_static

from ..made_reports import made_attempt, made_report
from .conftest import Visitor, running
from .hostile import rollout

pytestmark = pytest.mark.xdist_group("browser")

PHONE = {"viewport": {"width": 360, "height": 740}, "is_mobile": True, "has_touch": True}


def test_every_page_of_a_real_set_loads_without_errors(shapes_server: str, visit: Visitor) -> None:
    visited = visit(f"{shapes_server}/")
    page = visited.page
    expect(page.locator("h1")).to_have_text("shapes")
    expect(page.locator(".tile b").first).to_have_text("8")
    for name in filter(None, LISTS):
        page.click(f'.top nav a[href="/{name}"]')
        expect(page.locator('.top nav a[aria-current="page"]')).to_have_attribute("href", f"/{name}")
    page.goto(f"{shapes_server}/tasks")
    expect(page.locator("[data-testid=tasks] tbody tr")).to_have_count(8)
    page.locator("[data-testid=tasks] a.id").first.click()
    expect(page.locator("#deletion .sides")).not_to_have_count(0)
    expect(page.locator("#deletion .sides .k")).not_to_have_count(0)  # highlighted
    expect(page.locator("[data-testid=gates] > details")).not_to_have_count(0)
    assert visited.problems == []


def test_searching_and_filtering(shapes_server: str, visit: Visitor) -> None:
    page = visit(f"{shapes_server}/tasks").page
    name = page.locator("[data-testid=tasks] a.id").first.inner_text()
    page.fill("input[name=q]", name[-6:])
    page.press("input[name=q]", "Enter")
    expect(page.locator("[data-testid=tasks] tbody tr")).to_have_count(1)
    page.goto(f"{shapes_server}/tasks?q=nothing-has-this-name")
    expect(page.locator(".empty")).to_contain_text("No task matches")


def test_the_keyboard_reaches_everything(shapes_server: str, visit: Visitor) -> None:
    visited = visit(f"{shapes_server}/")
    page = visited.page
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("g")
    page.keyboard.press("t")
    page.wait_for_url("**/tasks")
    page.keyboard.press("/")
    expect(page.locator("input[name=q]")).to_be_focused()
    page.keyboard.type("jt")
    expect(page.locator("input[name=q]")).to_have_value("jt")
    page.fill("input[name=q]", "")
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator("tr.here")).to_have_count(1)
    second = page.locator("[data-testid=tasks] a.id").nth(1)
    expect(second).to_be_focused()
    address = second.get_attribute("href")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{address}")
    page.keyboard.press("]")
    page.wait_for_function("old => location.pathname !== old", arg=address)
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#keys")).not_to_be_visible()
    assert visited.problems == []


def test_a_phone_needs_no_sideways_scrolling(shapes_server: str, hostile_server: str, visit: Visitor) -> None:
    page = visit(f"{shapes_server}/", **PHONE).page
    page.goto(f"{shapes_server}/tasks")
    task = f"{shapes_server}{page.locator('[data-testid=tasks] a.id').first.get_attribute('href')}"
    lists = [f"{server}/{name}" for server in (shapes_server, hostile_server) for name in LISTS]
    for address in [task, *lists]:
        page.goto(address)
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= 360, address


def test_dark_and_light(shapes_server: str, visit: Visitor) -> None:
    script = "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
    schemes = ("dark", "light")
    colors = {name: visit(f"{shapes_server}/", color_scheme=name).page.evaluate(script) for name in schemes}
    brightness = {
        scheme: [sum(map(int, color[4:-1].split(","))) / 765 for color in found] for scheme, found in colors.items()
    }
    assert brightness["dark"][0] < 0.2 < 0.8 < brightness["dark"][1]
    assert brightness["light"][1] < 0.2 < 0.8 < brightness["light"][0]


def test_reading_needs_no_javascript(shapes_server: str, visit: Visitor) -> None:
    visited = visit(f"{shapes_server}/tasks?sort=loc", java_script_enabled=False)
    page = visited.page
    page.select_option("select[name=kind]", index=1)
    page.click("form.filters button")
    assert "kind=" in page.url
    page.locator("[data-testid=tasks] a.id").first.click()
    expect(page.locator("h1")).to_contain_text("shapes__")
    page.locator("[data-testid=gates] summary").first.click()
    expect(page.locator("[data-testid=gates] .run").first).to_be_visible()
    page.click("text=raw >> nth=0")
    expect(page.locator("pre")).to_contain_text("diff --git")
    assert visited.problems == []


def test_a_hostile_set_runs_and_loads_nothing(hostile_server: str, visit: Visitor) -> None:
    visited = visit(f"{hostile_server}/")
    page = visited.page
    addresses = {f"{hostile_server}/{name}" for name in LISTS}
    done = set()
    while todo := sorted(addresses - done):
        done.add(todo[0])
        page.goto(todo[0])
        assert page.evaluate("window.pwned") is None, todo[0]
        assert page.locator("iframe, img, script:not([src]), [style], [onclick], [onerror], [onload]").count() == 0
        assert page.locator('a[href^="javascript"], a[href*="evil.example"], a[href^="data"]').count() == 0
        hrefs = page.eval_on_selector_all("main a.id[href]", "links => links.map((a) => a.href)")
        kinds = ("/task/", "/try/", "/rejection/", "/refresh/", "/import/")
        addresses |= {href for href in hrefs if any(kind in href for kind in kinds)}
    assert len([address for address in done if "/task/" in address]) == 4
    assert len([address for address in done if "/try/" in address]) == 5
    assert any("/rejection/" in address for address in done)
    assert any("/refresh/" in address for address in done)
    assert len([address for address in done if "/import/" in address]) == 3
    assert visited.problems == []


def test_hidden_characters_are_shown_and_huge_diffs_are_cut(hostile_server: str, visit: Visitor) -> None:
    page = visit(f"{hostile_server}/tasks").page
    page.locator("[data-testid=tasks] a.id", has_text="etc").click()
    expect(page.locator("#deletion")).to_be_visible()
    page.wait_for_load_state()  # a page of megabytes arrives in parts
    text = page.inner_text("main")
    assert not set("\u202e\u2066\u200b\x07\x1b\x00") & set(text)
    assert "⟨U+202E⟩" in text
    assert "more lines of this file left out" in text
    assert page.evaluate("document.documentElement.outerHTML.length") < 2_000_000


def test_refreshes_need_no_javascript_and_lead_to_their_tasks(shapes_set: Path, tmp_path: Path, visit: Visitor) -> None:
    root = tmp_path / "set"
    shutil.copytree(shapes_set, root, symlinks=True)
    bad, good, *others = TaskSet.open(root).ids()
    proved = (
        ReverifiedTask(instance_id=good, outcome="holds"),
        ReverifiedTask(instance_id=bad, outcome="quarantined", gate="g7_gold", reason="gold_fails", detail="1 of 2"),
    )
    gone = SourceReport(source="pypi:gone", num_tasks=0, num_candidates=0, stage="fetch", reason="unknown_source")
    for day in (1, 2):
        name = f"2026010{day}T033000Z-7"
        came = tuple(others[:2]) if day == 2 else ()
        report = made_report(
            name, started_at=f"2026-01-0{day}T03:30:00+00:00", came=came, went=("removed__1",), reverified=proved,
            sources=(gone,), failures=(FailureCount(stage="fetch", reason="unknown_source", count=1),),
            costs=(StageCost(stage="prove", jobs=3, cpu_s=61.0, wall_s=30.0),),
        )  # fmt: skip
        write_report(root, report, "")
    with running(Site(index=LoadedSet(root))) as address:
        visited = visit(f"{address}/refreshes", java_script_enabled=False)
        page = visited.page
        expect(page.locator("[data-testid=refreshes] tbody tr")).to_have_count(2)
        page.locator("[data-testid=refreshes] a.id").first.click()
        expect(page.locator("h1")).to_have_text("Refresh of 2026-01-02 03:30:00 UTC")
        expect(page.locator("[data-testid=came] a.id")).to_have_count(2)
        expect(page.locator("[data-testid=went] a")).to_have_count(0)  # it has no page any more
        first = page.locator("[data-testid=reverified] tbody tr").first
        expect(first).to_contain_text("quarantined")
        expect(first).to_contain_text("gold_fails")
        expect(page.locator("[data-testid=refreshed-sources]")).to_contain_text("fetch: unknown_source")
        expect(page.locator("[data-testid=stage-costs]")).to_contain_text("prove")
        first.locator("a.id").click()
        expect(page.locator("h1")).to_contain_text(bad)
        page.go_back()
        page.click("text=older")
        expect(page.locator("h1")).to_have_text("Refresh of 2026-01-01 03:30:00 UTC")
        assert visited.problems == []
    folder = tmp_path / "copy"
    write_static(Site(index=LoadedSet(root), is_static=True), folder)
    page = visit((folder / "refreshes.html").as_uri(), java_script_enabled=False).page
    page.locator("[data-testid=refreshes] a.id").first.click()
    page.locator("[data-testid=came] a.id").first.click()
    expect(page.locator("h1")).to_contain_text(others[0])


def test_imports_lead_from_what_is_wrong_to_the_row_and_from_a_row_to_its_task(
    shapes_set: Path, tmp_path: Path, visit: Visitor
) -> None:
    root = tmp_path / "set"
    shutil.copytree(shapes_set, root, symlinks=True)
    task = TaskSet.open(root).ids()[0]
    plain = ImportRow(
        imported_set="theirs", format="swebench", place="theirs.jsonl:1", instance_id=task, repo="a/b",
        base_commit="c0ffee", status="imported", reason="", detail="", advice="", checks={"g7_gold": "passed"},
        num_f2p=3, num_f2p_confirmed=3, history="", row="{}", row_sha256="0", excise_version="1",
    )  # fmt: skip
    wrong = replace(
        plain, place="theirs.jsonl:2", instance_id="a__b-2", status="refused", reason="gold_fails",
        detail="1 of 3 tests fails with the gold patch.", num_f2p_confirmed=2, unconfirmed={"fails_with_gold": 1},
        unconfirmed_examples=("tests/test_b.py::test_c",), num_attacks=5, attacks_on_log=("early_exit", "plugin"),
        checks={"sources": "passed", "g7_gold": "failed: 1 of 3"}, row='{"patch": "diff"}',
    )  # fmt: skip
    for row in (plain, wrong):
        write_import(root, row)
    with running(Site(index=LoadedSet(root))) as address:
        visited = visit(f"{address}/imports", java_script_enabled=False)
        page = visited.page
        rows = page.locator("[data-testid=imports] tbody tr")
        expect(rows).to_have_count(2)
        expect(rows.first).to_contain_text("refused gold_fails2 of 3")  # what needs a look comes first
        expect(rows.first).to_contain_text("2 of 5")
        page.locator("[data-testid=import-counts] a").click()
        expect(page.locator("[data-testid=imports] tbody tr")).to_have_count(1)
        page.locator("[data-testid=imports] a.id").click()
        expect(page.locator("main")).to_contain_text("1 of 3 tests fails with the gold patch.")
        expect(page.locator("main")).to_contain_text("tests/test_b.py::test_c")
        expect(page.locator("[data-testid=import-checks] .bad")).to_have_text("failed: 1 of 3")
        expect(page.locator("pre.raw")).to_have_text('{"patch": "diff"}')
        assert visited.problems == []
    folder = tmp_path / "copy"
    write_static(Site(index=LoadedSet(root), is_static=True), folder)
    page = visit((folder / "imports.html").as_uri(), java_script_enabled=False).page
    page.locator("[data-testid=imports] a.id").last.click()
    page.click("text=its task in this set")
    expect(page.locator("h1")).to_contain_text(task)


def test_scores_are_a_picture_and_a_table_without_javascript(tmp_path: Path, visit: Visitor) -> None:
    root = tmp_path / "set"
    for number, mark in enumerate("10011011"):
        write_attempt(root, made_attempt("first", number, solved=mark == "1"))
        write_attempt(root, made_attempt("second", number, solved=True, style="terse", cost=None))
    merge_rows(root, "first")
    with running(Site(index=LoadedSet(root))) as address:
        visited = visit(f"{address}/scores", java_script_enabled=False)
        page = visited.page
        charts = page.locator("[data-testid=score-charts] .card")
        expect(charts.locator("h2")).to_have_text(
            ["pass@k by k", "Solved within completion tokens", "Solved within cost", "Solved within seconds"]
        )
        expect(charts.nth(0).locator("path.line")).to_have_count(2)
        expect(charts.nth(2).locator("path.line")).to_have_count(1)  # only one of them has prices
        expect(charts.nth(2).locator("path.s1")).to_have_count(1)  # in its own colour
        rows = page.locator("[data-testid=scores] tbody tr")
        expect(rows).to_have_count(2)
        expect(rows.first).to_contain_text("1.000 ± 0.000")
        expect(rows.nth(1)).to_contain_text("0.625 ± 0.125")
        page.locator("[data-testid=curve] summary").first.click()
        expect(page.locator("[data-testid=curve] table").first).to_be_visible()
        page.select_option("select[name=style]", "terse")
        page.click("form.filters button")
        expect(rows).to_have_count(1)
        rows.first.locator("a.id").click()
        expect(page.locator("[data-testid=tries] tbody tr")).to_have_count(8)
        assert visited.problems == []
    folder = tmp_path / "copy"
    write_static(Site(index=LoadedSet(root), is_static=True), folder)
    page = visit((folder / "scores.html").as_uri(), java_script_enabled=False).page
    expect(page.locator("[data-testid=scores] tbody tr")).to_have_count(2)


def test_pages_follow_a_set_that_grows(shapes_set: Path, tmp_path: Path, visit: Visitor) -> None:
    root = tmp_path / "growing"
    root.mkdir()
    with running(Site(index=LoadedSet(root, check_every_s=0.05))) as address:
        visited = visit(f"{address}/")
        expect(visited.page.locator(".empty")).to_contain_text("no snapshot yet")
        shutil.copytree(shapes_set / "snapshots", root / "snapshots")
        (root / "current").symlink_to("snapshots/1")
        expect(visited.page.locator(".tile b").first).to_have_text("8", timeout=20_000)
        visited.page.goto(f"{address}/training")
        expect(visited.page.locator(".empty")).to_contain_text("No training run")
        write_rollouts(root, "first", 1, [rollout(run="first", step=1, rollout_id="r1", instance_id="x")])
        expect(visited.page.locator("a", has_text="first")).to_be_visible(timeout=20_000)
        assert visited.problems == []


def test_a_static_copy_works_from_files(hostile_set: Path, tmp_path: Path, visit: Visitor) -> None:
    folder = tmp_path / "copy"
    assert write_static(Site(index=LoadedSet(hostile_set), is_static=True), folder) > 10
    visited = visit((folder / "index.html").as_uri())
    page = visited.page
    expect(page.locator(".tile").first).to_have_css("border-top-style", "solid")  # the style sheet is there
    done: set[str] = set()
    todo = {page.url}
    while todo - done:
        address = sorted(todo - done)[0]
        done.add(address)
        page.goto(address)
        assert page.evaluate("window.pwned") is None, address
        assert "Not found" not in page.title()
        links = page.eval_on_selector_all("a[href]", "links => links.map((a) => a.href.split('#')[0])")
        todo |= {link for link in links if link.endswith(".html")}
    assert len(done) > 10
    assert all(Path(address.removeprefix("file://")).is_relative_to(folder) for address in done)
    assert [problem for problem in visited.problems if not problem.startswith("asked file:")] == []
