"""Shell scripts as data: every construct that agents and build files use comes out as bash would see it."""

from __future__ import annotations

import time

import pytest

from excise.system.shell_syntax import ShellWord, parse_shell


def words(script: str) -> list[list[str]]:
    return [[word.text for word in command.words] for command in parse_shell(script)]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("a 1 | b 2 |& c", [["a", "1"], ["b", "2"], ["c"]]),
        ("a && b || c; d & e\nf", [["a"], ["b"], ["c"], ["d"], ["e"], ["f"]]),
        ("(cd x && make); { b; }", [["cd", "x"], ["make"], ["b"]]),
        ("! grep x y; time ls", [["grep", "x", "y"], ["time", "ls"]]),
        ("if a; then b; elif c; then d; else e; fi", [["a"], ["b"], ["c"], ["d"], ["e"]]),
        ("for i in 1 2; do y $i; done; while read l; do z; done", [["y", "$i"], ["read", "l"], ["z"]]),
        ("case $x in a) b;; *) c;; esac", [["b"], ["c"]]),
        ("f() { rm x; }; f", [["rm", "x"], ["f"]]),
        ("a \\\n  b # c d\n# e", [["a", "b"]]),
    ],
)
def test_pipelines_lists_and_blocks(script: str, expected: list[list[str]]) -> None:
    assert words(script) == expected


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ('echo "a $(cat "b c") d"', [["echo", "a  d"], ["cat", "b c"]]),
        ("echo `ls x` $(a $(b))", [["echo", "", ""], ["ls", "x"], ["a", ""], ["b"]]),
        ("diff <(sort a) <(sort b)", [["diff", "", ""], ["sort", "a"], ["sort", "b"]]),
        ("X=$(git log); make", [["git", "log"], ["make"]]),
        ("cat $(git rev-parse --show-toplevel)/.git/x", [["cat", "/.git/x"], ["git", "rev-parse", "--show-toplevel"]]),
        ("cat <<EOF\n$(rm x)\nEOF", [["cat"], ["rm", "x"]]),
        ("cat <<'EOF'\n$(rm x)\nEOF", [["cat"]]),
    ],
)
def test_substitutions_are_commands_of_their_own(script: str, expected: list[list[str]]) -> None:
    assert words(script) == expected


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("a 'b c' \"d e\" f\\ g", ["a", "b c", "d e", "f g"]),
        ("a 'it'\"'\"'s' x\"y\"z", ["a", "it's", "xyz"]),
        ('a "say \\"hi\\" to \\$x"', ["a", 'say "hi" to $x']),
        ("a \"  padded  \" ''", ["a", "  padded  ", ""]),
        ("a $'one\\ntwo'", ["a", "one\ntwo"]),
        ("python -c 'import a\na.b(\"c\")' x", ["python", "-c", 'import a\na.b("c")', "x"]),
        ("python -c \"import a\nif x:\n    y('z')\"", ["python", "-c", "import a\nif x:\n    y('z')"]),
        ("FOO=1 BAR='x y' make -j4", ["make", "-j4"]),
        ("export A=1 B='x y'", ["export", "A=1", "B='x y'"]),
        ("find . -exec grep -l x {} \\;", ["find", ".", "-exec", "grep", "-l", "x", "{}", ";"]),
    ],
)
def test_quotes_escapes_and_assignments(script: str, expected: list[str]) -> None:
    assert words(script) == [expected]


def test_what_bash_would_expand_is_marked() -> None:
    found = parse_shell("a b $x '*' *.py ${v}")[0]
    assert found.words == (
        ShellWord("a"), ShellWord("b"), ShellWord("$x", is_expanded=True), ShellWord("*"),
        ShellWord("*.py", is_expanded=True), ShellWord("${v}", is_expanded=True),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("script", "written"),
    [
        ("a > b", ["b"]), ("a >> b", ["b"]), ("a &> b", ["b"]), ("a >& b", ["b"]), ("a >| b", ["b"]),
        ("a 2> b", ["b"]), ("a 2>&1", []), ("a >&2", []), ("a < b", []), ("> b", ["b"]), (">> b a", ["b"]),
        ("a > b 2>&1 < c", ["b"]), ("x | a > 'b c'", ["b c"]), ("(x; a) > b", ["b"]), ("cat <<E > b\n1\nE", ["b"]),
    ],
)  # fmt: skip
def test_redirections(script: str, written: list[str]) -> None:
    command = parse_shell(script)[-1]
    assert [file for redirection in command.redirections if (file := redirection.written_file)] == written
    assert [word.text for word in command.words] in ([], ["a"], ["cat"])


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("python - <<'EOF'\nprint(1)\nEOF\necho done", [("python", "print(1)\n"), ("echo", None)]),
        ("python - <<EOF | head\nx = 'a; rm b'\nEOF", [("python", "x = 'a; rm b'\n"), ("head", None)]),
        ('cd /tmp && python3 - <<"EOF"\n1\nEOF', [("cd", None), ("python3", "1\n")]),
        ("cat <<EOF > f && python f\nbody\nEOF\nls", [("cat", "body\n"), ("python", None), ("ls", None)]),
        ("bash <<-EOF\n\tgit log\n\tEOF\nls", [("bash", "git log\n"), ("ls", None)]),
        ("bash <<< 'git log'", [("bash", "git log")]),
        ("a <<E > o 2>&1; ls\nx\nE\nwc o", [("a", "x"), ("ls", None), ("wc", None)]),
        ("a <<A; b <<B\n1\nA\n2's\nB\nls", [("a", "1"), ("b", "2's"), ("ls", None)]),
        ("a <<EOF\nnever ends", [("a", "never ends")]),
    ],
)
def test_here_documents(script: str, expected: list[tuple[str, str | None]]) -> None:
    assert [(command.words[0].text, command.stdin) for command in parse_shell(script)] == expected


def test_what_is_no_shell_is_left_out() -> None:
    assert words("git status\necho 'open\ngit fsck") == [["git", "status"], ["echo"]]
    assert words("echo 'git fsck\nrm x' && ls") == [["echo", "git fsck\nrm x"], ["ls"]]


@pytest.mark.parametrize(
    "script",
    [
        "",
        "'",
        "((((",
        "\0",
        "\ud800",
        "x" * 500_000,
        "|" * 9999,
        "$(" * 90_000,
        "`" * 99,
        "<<A " * 50_000,
        '"$(' * 50_000,
    ],
    ids=range(11),
)
def test_hostile_scripts_end_soon(script: str) -> None:
    began = time.monotonic()
    parse_shell(script)
    assert time.monotonic() - began < 20
