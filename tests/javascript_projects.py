"""A tiny project in JavaScript or TypeScript for each test runner: the same code, the same tests."""

from __future__ import annotations

import json
from collections.abc import Mapping

RUNNERS: Mapping[str, Mapping[str, object]] = {
    "node-esm": {"type": "module", "scripts": {"test": "node --test"}},
    "tape": {"scripts": {"test": "tape test/*.js"}, "devDependencies": {"tape": "^5.9.0"}},
    "tap": {"scripts": {"test": "tap"}, "devDependencies": {"tap": "^16.3.0"}},
    "mocha": {"scripts": {"test": "mocha test"}, "devDependencies": {"mocha": "^10.8.0", "chai": "^4.5.0"}},
    "mocha-esm": {"type": "module", "scripts": {"test": "mocha"}, "devDependencies": {"mocha": "^10.8.0"}},
    "jest": {
        "scripts": {"test": "jest"},
        "devDependencies": {"jest": "^29.7.0", "ts-jest": "^29.2.0", "typescript": "^5.6.0"},
        "jest": {"transform": {"[.]ts$": ["ts-jest", {"isolatedModules": True}], "[.]js$": "babel-jest"}},
    },
    "vitest": {"type": "module", "scripts": {"test": "vitest run"}, "devDependencies": {"vitest": "^3.2.0"}},
    "node-ts": {
        "type": "module",
        "scripts": {"test": "node --import tsx --test test/*.ts"},
        "devDependencies": {"tsx": "^4.19.0", "typescript": "^5.6.0"},
    },
}
"""Name of a kind of project to what its manifest says beside its name."""
_ESM = frozenset({"node-esm", "mocha-esm", "vitest", "node-ts"})
_TYPED = frozenset({"node-ts", "vitest"})
_TARIFF = """\
/** The fare in cents of a crossing: {doc}. */
{export}function fare(length{number}, return_ = false){number} {{
  if (!(length > 0)) throw new RangeError('a ferry has no room for nothing')
  const single = length <= 4 ? 1250 : 1250 + Math.ceil(length - 4) * 310
  return return_ ? Math.round(single * 1.8) : single
}}

/** The name of a class of vehicles by its length in metres. */
{export}function vehicle(length{number}){string} {{
  if (length <= 2.5) return 'bicycle'
  return length <= 5 ? 'car' : 'lorry'
}}
"""
_DECK = """\
{imports}
/** The deck of a ferry, which loads vehicles until it is full. */
{export}class Deck {{
{fields}  constructor(metres{number}) {{
    this.metres = metres
    this.loaded = []
  }}

  /** Load a vehicle and return the metres that are left; a vehicle that is too long stays on land. */
  load(length{number}){number} {{
    if (length <= this.free()) this.loaded.push(length)
    return this.free()
  }}

  /** The metres that are left. */
  free(){number} {{
    return this.metres - this.loaded.reduce((sum, each) => sum + each, 0)
  }}

  /** What all vehicles pay together, in cents. */
  takings(){number} {{
    return this.loaded.reduce((sum, each) => sum + fare(each), 0)
  }}
}}
"""
_TESTS = """\
describe('fare', () => {{
  it('grows with the length', () => {{
    {equal(fare(3), 1250)}
    {equal(fare(7.5), 2490)}
  }})
  it('is cheaper there and back', () => {{
    {equal(fare(4, true), 2250)}
  }})
  it('needs a vehicle', () => {{
    {throws(() => fare(0))}
  }})
}})
describe('vehicle', () => {{
  it('is told by its length', () => {{
    {same([2, 4, 9].map((each) => vehicle(each)), ['bicycle', 'car', 'lorry'])}
  }})
}})
describe('Deck', () => {{
  it('loads until it is full', () => {{
    const deck = new Deck(10)
    {equal(deck.load(6), 4)}
    {equal(deck.load(5), 4)}
    {same(deck.loaded, [6])}
  }})
  it('adds up the fares', () => {{
    const deck = new Deck(20)
    for (const length of [3, 6]) deck.load(length)
    {equal(deck.takings(), 3120)}
  }})
}})
"""
_ASSERTIONS = {
    "assert": {"equal": "assert.strictEqual(%s)", "same": "assert.deepStrictEqual(%s)", "throws": "assert.throws(%s)"},
    "tape": {"equal": "t.equal(%s)", "same": "t.deepEqual(%s)", "throws": "t.throws(%s)"},
    "tap": {"equal": "t.equal(%s)", "same": "t.same(%s)", "throws": "t.throws(%s)"},
    "chai": {"equal": "expect(%a).to.equal(%b)", "same": "expect(%a).to.deep.equal(%b)",
             "throws": "expect(%s).to.throw(RangeError)"},
    "expect": {"equal": "expect(%a).toBe(%b)", "same": "expect(%a).toEqual(%b)", "throws": "expect(%s).toThrow()"},
}  # fmt: skip


def project(kind: str) -> dict[str, str]:
    """The files of a project of one kind of :data:`RUNNERS`; that of jest is in both languages."""
    esm, typed = kind in _ESM, kind in _TYPED
    source, test = ("ts", "ts") if typed else ("js", "js")
    words = _words(typed=typed, esm=esm)
    suffix = "" if kind in {"jest", "vitest"} else f".{source}"
    tariff = f"./tariff{suffix}"
    deck = _DECK.format(
        imports=f"import {{ fare }} from '{tariff}'\n" if esm else f"const {{ fare }} = require('{tariff}')\n",
        fields="  metres: number\n  loaded: number[]\n\n" if typed else "",
        **words,
    )
    names = ("fare", "vehicle", "Deck")
    exports = {
        True: f"export {{ fare, vehicle }} from '{tariff}'\nexport {{ Deck }} from './deck{suffix}'\n",
        False: "module.exports = { ...require('./tariff'), ...require('./deck') }\n",
    }[esm]
    files = {
        "package.json": json.dumps(
            {"name": "ferries", "version": "1.0.0", "license": "MIT", **RUNNERS[kind]}, indent=2
        ),
        f"src/tariff.{source}": _TARIFF.format(**words) + ("" if esm else "\nmodule.exports = { fare, vehicle }\n"),
        f"src/deck.{source}": deck + ("" if esm else "\nmodule.exports = { Deck }\n"),
        f"src/index.{source}": exports,
        f"test/ferries.test.{test}": _test_file(kind, f"../src/index{suffix}", names),
        "README.md": "# Ferries\n\nFares (`fare`), vehicles (`vehicle`) and decks (`Deck`) of ferries.\n",
    }
    options = {"strict": True, "target": "es2022", "moduleResolution": "node", "skipLibCheck": True,
               "esModuleInterop": True}  # fmt: skip
    if typed:
        options |= {"module": "esnext", "allowImportingTsExtensions": True, "noEmit": True}
        files["tsconfig.json"] = json.dumps({"compilerOptions": options})
    if kind == "jest":
        del files["src/tariff.js"]
        files["src/tariff.ts"] = _TARIFF.format(**_words(typed=True, esm=True))
        files["tsconfig.json"] = json.dumps({"compilerOptions": options | {"module": "commonjs"}})
    return files


def _words(*, typed: bool, esm: bool) -> dict[str, str]:
    """What the templates of sources leave open."""
    return {
        "number": ": number" if typed else "",
        "string": ": string" if typed else "",
        "export": "export " if esm else "",
        "doc": "by the length of a vehicle in metres",
    }


def _test_file(kind: str, module: str, names: tuple[str, ...]) -> str:
    style = {"tape": "tape", "tap": "tap", "mocha": "chai", "jest": "expect", "vitest": "expect"}.get(kind, "assert")
    heads = {
        "node-esm": "import { describe, it } from 'node:test'\nimport assert from 'node:assert'\n",
        "node-ts": "import { describe, it } from 'node:test'\nimport assert from 'node:assert'\n",
        "tape": "const test = require('tape')\n",
        "tap": "const { test } = require('tap')\n",
        "mocha": "const { expect } = require('chai')\n",
        "mocha-esm": "import assert from 'node:assert'\n",
        "vitest": "import { describe, expect, it } from 'vitest'\n",
    }
    listed = ", ".join(names)
    is_esm = kind in _ESM
    imports = f"import {{ {listed} }} from '{module}'\n" if is_esm else f"const {{ {listed} }} = require('{module}')\n"
    text = _TESTS.replace("{{", "{").replace("}}", "}")
    for name, pattern in _ASSERTIONS[style].items():
        text = _with_assertions(text, name, pattern)
    if style in {"tape", "tap"}:
        text = text.replace("describe(", "test(").replace("', () => {", "', (t) => {").replace("  it(", "  t.test(")
        text = text.replace("  })\n", "    t.end()\n  })\n").replace("\n})\n", "\n  t.end()\n})\n")
    return f"{heads.get(kind, '')}{imports}\n{text}"


def _with_assertions(text: str, name: str, pattern: str) -> str:
    lines = []
    for line in text.split("\n"):
        before, found, rest = line.partition(f"{{{name}(")
        inside = rest[:-2]
        cut = _last_comma(inside)
        made = pattern.replace("%s", inside).replace("%a", inside[:cut]).replace("%b", inside[cut + 2 :])
        lines.append(before + made if found else line)
    return "\n".join(lines)


def _last_comma(text: str) -> int:
    """Where the last comma outside brackets is."""
    depth = 0
    for place in range(len(text) - 1, -1, -1):
        depth += (text[place] in ")]}") - (text[place] in "([{")
        if text[place] == "," and depth == 0:
            return place
    return len(text)
