"""Code of JavaScript is found in minified bundles by what minifiers keep of it."""

from __future__ import annotations

import json

from excise.extractors.javascript.analysis.codebase import JavaScriptCodebase
from excise.verifiers.leaks.content_cache import ContentCache
from excise.verifiers.leaks.decoders.minified_js import kept_words
from excise.verifiers.leaks.scan import Level, PlaceRules, ScannedFiles, leaks_in
from excise.verifiers.leaks.targets import targets_of

SOURCE = """\
function serialise (component, options) { // joins the parts
  const written = []
  if (options.reference !== 'suffix' && component.scheme) {
    written.push(component.scheme, ':')
  }
  const authority = recompose(component)
  if (authority !== undefined) {
    if (options.reference !== 'suffix') written.push('//')
    written.push(authority)
    if (component.path && component.path.charAt(0) !== '/') written.push('/')
  }
  if (component.query !== undefined) written.push(`?${component.query}`, component.query.length)
  if (component.fragment !== undefined) written.push('#', component.fragment)
  return { joined: written.join(''), length: written.length }
}
"""
MINIFIED = (
    "'use strict';var a=1;function t(e){return e&&e.host}"
    "function n(e,n){const r=[];'suffix'!==n.reference&&e.scheme&&r.push(e.scheme,':');const o=t(e);"
    "void 0!==o&&('suffix'!==n.reference&&r.push('//'),r.push(o),e.path&&'/'!==e.path.charAt(0)&&r.push('/')),"
    "void 0!==e.query&&r.push(`?${e.query}`,e.query.length),void 0!==e.fragment&&r.push('#',e.fragment);"
    "return{joined:r.join(''),length:r.length}}module.exports={serialise:n};"
)
OTHER = (
    MINIFIED.replace("scheme", "protocol").replace("path", "route").replace("fragment", "rest").replace("query", "q")
)


def found_in(text: str) -> list[Level]:
    codebase = JavaScriptCodebase.from_texts({"lib/a.js": SOURCE})
    targets = targets_of(codebase, [("lib/a.js::serialise", SOURCE)])
    scanned = ScannedFiles([("bundle.js", ContentCache().of(text.encode()))])
    return [leak.level for leak in leaks_in(scanned, targets, PlaceRules()) if leak.level >= Level.L3]


def test_minified_code_is_found() -> None:
    assert Level.L4 in found_in(MINIFIED)


def test_minified_code_with_other_properties_is_not() -> None:
    assert found_in(OTHER) == []


def test_properties_keys_and_texts_are_kept() -> None:
    code = b"const a = /['\"]/; x.one(a.two, 'three four') // five\nlet y = { six: 7, eight }; s = `nine ${ten} eleven`"
    assert kept_words(code).split() == [b"one", b"two", b"three", b"four", b"six", b"nine", b"eleven"]


def test_minified_lines_in_a_long_script_are_found() -> None:
    plain = "".join(f"function plain{n} (x) {{\n  return x + {n}\n}}\n" for n in range(300))
    assert Level.L4 in found_in(f"{plain}{MINIFIED}\n{plain}")


def test_minified_code_in_a_source_map_is_found() -> None:
    assert Level.L4 in found_in(json.dumps({"version": 3, "sourcesContent": [f"{MINIFIED}\n"], "mappings": "AAAA"}))
