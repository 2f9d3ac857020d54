"""Text artefacts that contain the source (leak level L4): copies, reports, listings, text embedded in text."""

from __future__ import annotations

import ast
import base64
import difflib
import html
import json
import pprint
import urllib.parse
from pathlib import Path

from pygments import highlight
from pygments.formatters import HtmlFormatter, LatexFormatter, RtfFormatter, SvgFormatter, Terminal256Formatter
from pygments.lexers import PythonLexer


def _lines(source: bytes) -> list[str]:
    return source.decode().splitlines()


def _write(folder: Path, name: str, text: str | bytes) -> None:
    (folder / name).write_bytes(text.encode(errors="surrogatepass") if isinstance(text, str) else text)


def copy(source: bytes, folder: Path) -> None:
    _write(folder, "module.py.orig", source)


def crlf_tabs(source: bytes, folder: Path) -> None:
    _write(folder, "module.py~", source.replace(b"    ", b"\t").replace(b"\n", b"\r\n"))


def diff(source: bytes, folder: Path) -> None:
    _write(
        folder,
        "fix.patch",
        "\n".join(difflib.unified_diff([], _lines(source), "/dev/null", "b/module.py", "", "", 3, "")),
    )


def commented(source: bytes, folder: Path) -> None:
    _write(folder, "old.py", "".join(f"# {line}\n" for line in _lines(source)))


def quoted(source: bytes, folder: Path) -> None:
    _write(folder, "mail.txt", "".join(f"> > {line}\n" for line in _lines(source)))


def numbered(source: bytes, folder: Path) -> None:
    _write(folder, "listing.txt", "".join(f"{n:6}\t{line}\n" for n, line in enumerate(_lines(source), 1)))


def debugger(source: bytes, folder: Path) -> None:
    _write(
        folder,
        "pdb.log",
        "".join(f"{n:4} {'->' if n % 7 == 0 else ''} \t{line}\n" for n, line in enumerate(_lines(source), 1)),
    )


def wide(source: bytes, folder: Path) -> None:
    _write(folder, "wide.txt", source.decode().encode("utf-16"))


def wide_unmarked(source: bytes, folder: Path) -> None:
    _write(folder, "wide.bin", source.decode().encode("utf-16-le"))


def annotated(source: bytes, folder: Path) -> None:
    _write(
        folder, "module.py,cover", "".join(f"{'>' if n % 3 else '!'} {line}\n" for n, line in enumerate(_lines(source)))
    )


def unparsed(source: bytes, folder: Path) -> None:
    _write(folder, "reformatted.py", ast.unparse(ast.parse(source)))


def notebook(source: bytes, folder: Path) -> None:
    cell = {"cell_type": "code", "source": source.decode().splitlines(keepends=True)}
    _write(folder, "notes.ipynb", json.dumps({"cells": [cell], "nbformat": 4}, indent=1))


def json_cache(source: bytes, folder: Path) -> None:
    _write(folder, "cache.json", json.dumps({"files": {"module.py": {"text": source.decode(), "hash": "x"}}}))


def json_in_json(source: bytes, folder: Path) -> None:
    _write(folder, "events.log", json.dumps({"body": json.dumps({"text": source.decode()})}))


def representation(source: bytes, folder: Path) -> None:
    _write(folder, "locals.txt", f"source = {source.decode()!r}\n")


def pretty(source: bytes, folder: Path) -> None:
    _write(folder, "state.txt", pprint.pformat({"lines": _lines(source)}, width=200))


def inline_map(source: bytes, folder: Path) -> None:
    map_ = json.dumps({"version": 3, "sources": ["module.py"], "sourcesContent": [source.decode()]})
    _write(
        folder,
        "out.js",
        f"x()\n//# sourceMappingURL=data:application/json;base64,{base64.b64encode(map_.encode()).decode()}\n",
    )


def pem(source: bytes, folder: Path) -> None:
    _write(folder, "attachment.eml", b"Content-Transfer-Encoding: base64\n\n" + base64.encodebytes(source))


def urlsafe(source: bytes, folder: Path) -> None:
    _write(folder, "token.txt", b"data=" + base64.urlsafe_b64encode(source).rstrip(b"="))


def url(source: bytes, folder: Path) -> None:
    _write(folder, "access.log", f"GET /run?code={urllib.parse.quote(source.decode())} 200")


def html_page(source: bytes, folder: Path) -> None:
    _write(folder, "module.html", highlight(source.decode(), PythonLexer(), HtmlFormatter(full=True, linenos="inline")))


def html_table(source: bytes, folder: Path) -> None:
    rows = "".join(
        f'<p class="run"><span class="n"><a id="t{n}">{n}</a></span><span class="t">{_coloured(line)}</span></p>\n'
        for n, line in enumerate(_lines(source), 1)
    )
    _write(folder, "coverage.html", f"<html><body>{rows}</body></html>")


def _coloured(line: str) -> str:
    return "".join(f'<span class="key">{html.escape(word)}</span> ' for word in line.split(" "))


def xml(source: bytes, folder: Path) -> None:
    _write(folder, "report.xml", f"<testsuite><system-out>{html.escape(source.decode())}</system-out></testsuite>")


def terminal(source: bytes, folder: Path) -> None:
    _write(folder, "typescript", highlight(source.decode(), PythonLexer(), Terminal256Formatter()))


def svg(source: bytes, folder: Path) -> None:
    _write(folder, "code.svg", highlight(source.decode(), PythonLexer(), SvgFormatter()))


def rtf(source: bytes, folder: Path) -> None:
    _write(folder, "code.rtf", highlight(source.decode(), PythonLexer(), RtfFormatter()))


def latex(source: bytes, folder: Path) -> None:
    _write(folder, "code.tex", highlight(source.decode(), PythonLexer(), LatexFormatter()))


def prompts(source: bytes, folder: Path) -> None:
    first, *rest = _lines(source)
    _write(folder, "session.rst", "\n".join([f">>> {first}", *(f"... {line}" for line in rest)]))


def shell_history(source: bytes, folder: Path) -> None:
    _write(folder, ".bash_history", f"cat > module.py <<'EOF'\n{source.decode()}EOF\npytest\n")


TEXTS = (
    copy, crlf_tabs, diff, commented, quoted, numbered, debugger, wide, wide_unmarked, annotated, unparsed, notebook,
    json_cache, json_in_json, representation, pretty, inline_map, pem, urlsafe, url, html_page, html_table, xml,
    terminal, svg, rtf, latex, prompts, shell_history,
)  # fmt: skip
