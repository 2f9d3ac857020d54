"""Diffs, statements, conversations, charts and text of strangers as HTML."""

from __future__ import annotations

import json

import pytest

from excise.datasets.viewer.rendering.charts import Series, line_chart, nice_ticks, number_text
from excise.datasets.viewer.rendering.conversation import rollout_messages, trajectory_messages, transcript_messages
from excise.datasets.viewer.rendering.diffs import MAX_FILE_LINES, parse_diff
from excise.datasets.viewer.rendering.highlighting import highlighted_lines
from excise.datasets.viewer.rendering.markdown import markdown_html
from excise.datasets.visible_text import visible

DIFF = """diff --git a/pkg/a.py b/pkg/a.py
--- a/pkg/a.py
+++ b/pkg/a.py
@@ -3,5 +3,4 @@ def f():
 a = 1
-b = 2
-c = 3
+b = '<3'
 d = 4
\\ No newline at end of file
diff --git a/gone.txt b/gone.txt
deleted file mode 100644
--- a/gone.txt
+++ /dev/null
@@ -1 +0,0 @@
-x
"""


def test_a_diff_has_both_sides_with_line_numbers() -> None:
    first, second = parse_diff(DIFF)
    assert (first.path, first.num_removed, first.num_added) == ("pkg/a.py", 2, 1)
    assert [(row.kind, row.left_number, row.right_number) for row in first.rows] == [
        ("hunk", None, None), ("same", 3, 3), ("changed", 4, 4), ("removed", 5, None), ("same", 6, 5),
    ]  # fmt: skip
    assert first.rows[0].heading == "def f():"
    assert "&lt;3" in first.rows[2].right
    assert (second.path, second.note) == ("gone.txt", "deleted")


@pytest.mark.parametrize(
    "text", ["", "no diff", "@@ nonsense @@", "diff --git", "--- a\n+++ b\n@@ -x +y @@\n+z", "\x00" * 9]
)
def test_what_is_no_diff_raises_no_error(text: str) -> None:
    assert all(file.rows is not None for file in parse_diff(text))


def test_long_diffs_are_cut() -> None:
    text = "--- a/x\n+++ b/x\n@@ -0,0 +1,5000 @@\n" + "".join(f"+{n}\n" for n in range(5000))
    (file,) = parse_diff(text)
    assert len(file.rows) < MAX_FILE_LINES + 10
    assert file.num_added == 5000
    assert file.num_cut > 4000


def test_code_that_begins_inside_a_string_is_highlighted_as_code() -> None:
    lines = highlighted_lines(["    end of a docstring.", '    """', "    return None"], "a.py")
    assert lines[0].startswith('<span class="s">')
    assert '<span class="k">return</span>' in lines[2]


def test_statements_hold_no_links_images_or_html() -> None:
    html = markdown_html("# T\n<b>x</b> [a](javascript:x) ![i](http://e/x.png) <http://e/>\n\n|a|b|\n|:-|-:|\n|1|2|\n")
    assert "<h3>T</h3>" in html
    assert "<td>1</td>" in html
    assert not any(mark in html for mark in ("<b>", "<a", "<img", "href", "style="))
    assert "[a](javascript:x)" in html


def test_deeply_nested_statements_raise_no_error() -> None:
    assert "deep" in markdown_html("> " * 5000 + "deep")
    assert "deep" in markdown_html("- " * 5000 + "deep" + "*" * 5000 + "[" * 5000)


def test_invisible_characters_get_names() -> None:
    assert visible("a\u202eb\x00c\x7f\u200b\ud800\r\nd\te") == "a⟨U+202E⟩b␀c␡⟨U+200B⟩⟨U+D800⟩\nd\te"
    assert visible("Z" + "\u0334" * 50) == "Z" + "\u0334" * 4 + "…"
    assert visible("naïve Ελληνικά 日本語 é") == "naïve Ελληνικά 日本語 é"


def test_a_conversation_is_split_into_turns_with_hints() -> None:
    text = (
        "<|im_start|>system\nYou code.<|im_end|>\n<|im_start|>user\nDo it.<|im_end|>\n"
        "<|im_start|>assistant\n<think>hm</think>one<|im_end|>\n<|im_start|>tool\nout<|im_end|>\n"
        "<|im_start|>assistant\ntwo<|im_end|>"
    )
    turns = [
        {"start": 0, "end": 7, "hint": "Read first.", "detector": "rash"},
        {"start": 9, "end": 12, "stop": "length"},
    ]
    messages = rollout_messages(text, json.dumps([{"turns": turns}]))
    assert [message.role for message in messages] == ["system", "user", "assistant", "tool", "assistant"]
    first, second = messages[2], messages[4]
    assert (first.thinking, first.text, first.hint, first.detector, first.tokens) == (
        "hm",
        "one",
        "Read first.",
        "rash",
        7,
    )
    assert (second.number, second.notes) == (2, ("stopped: length",))


def test_hints_that_fit_no_answer_stand_at_the_end() -> None:
    messages = rollout_messages("plain text", json.dumps([{"turns": [{"hint": "h", "start": 0, "end": 1}]}]))
    assert [(message.role, message.hint) for message in messages] == [("text", ""), ("event", "h")]
    assert rollout_messages("x", "not json")[0].text == "x"


def test_trajectories_and_transcripts_are_read() -> None:
    step = {"event": "step", "number": 1, "command": "ls", "exit_code": 2, "duration_s": 0.5, "output": "no"}
    call, answer = trajectory_messages([json.dumps({"event": "trajectory"}), json.dumps(step), "{cut"])
    assert (call.text, answer.text, answer.notes) == ("ls", "no", ("exit code 2", "0.5 s"))
    (said,) = transcript_messages('{"role": "assistant", "content": "hi"}\n')
    assert (said.role, said.text) == ("assistant", "hi")
    assert [m.role for m in transcript_messages('{"messages": [{"role": "user", "content": [{"text": "x"}]}]}')] == [
        "user"
    ]
    assert transcript_messages("free text")[0].role == "text"


def test_charts_need_finite_values_and_escape_names() -> None:
    assert line_chart([Series(name="a", points=((1, float("nan")),))], label="x") == ""
    chart = line_chart([Series(name="<b>", points=tuple((n, n % 7) for n in range(5000)))], label='"<')
    assert chart.count("<circle") <= 150
    assert "<b>" not in chart
    assert "&lt;b&gt;" in chart
    one = line_chart([Series(name="a", points=((3, 0.0),))], label="x")
    assert one.count("<circle") == 1


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [(0, 1, [0, 0.5, 1]), (0, 0, [0, 0.5, 1]), (-2, 3, [-2, 0, 2, 4]), (0, 70_000, [0, 25000, 50000, 75000])],
)
def test_ticks_are_round(low: float, high: float, ticks: list[float]) -> None:
    assert nice_ticks(low, high) == ticks


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.12345, "0.123"),
        (1234, "1,234"),
        (12345, "12.3k"),
        (2.5e6, "2.5M"),
        (-3e10, "-30G"),
        (float("nan"), "nan"),
    ],
)
def test_numbers_are_short(value: float, text: str) -> None:
    assert number_text(value) == text
