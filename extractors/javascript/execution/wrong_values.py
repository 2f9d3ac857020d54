"""What stands for a wrong value in a mirrored test: of the same kind and of about the same look as the right one.

Nobody can tell a wrong expectation from a right one who does not know the right one: every text and every number may be
the wrong form of another one. Edits of a test file name placeholders; :func:`fill` puts values in their places. The
values depend on a seed and on the file alone.
"""

from __future__ import annotations

import hashlib
import random
import re

WRONG = "exciseStandsForAFunction"
"""Stands for the name of a function that returns another value than its argument."""
WORD = "exciseStandsForAWord"
"""Stands for a word, without quotes."""
NUMBER = "exciseStandsForANumber"
"""Stands for a number of one to three digits."""
CLASS = "exciseStandsForAClass"
"""Stands for the name of a class of which nothing is an instance."""
PATTERN = f"/{WORD} {WORD}/"
"""Stands for a regular expression that matches no text."""
SEEDS = ("0", "1", "2")
"""Seeds of the forms that mirrored tests have."""

_NAMES = ("plain", "prepared", "value", "given", "made", "same", "sorted", "item")
_CLASSES = ("Date", "Map", "Promise", "RegExp", "Set", "WeakMap", "WeakSet")
_WORDS = (
    "amber", "anchor", "barrel", "basket", "bottle", "branch", "bridge", "button", "candle", "carpet",
    "castle", "circle", "copper", "corner", "cotton", "dinner", "engine", "fabric", "feather", "finger",
    "forest", "garden", "hammer", "harbor", "island", "jacket", "kettle", "ladder", "lemon", "marble",
    "meadow", "mirror", "needle", "orange", "pepper", "pillow", "planet", "pocket", "ribbon", "saddle",
    "silver", "spider", "summer", "ticket", "tunnel", "velvet", "window", "winter",
)  # fmt: skip
_HELPER = f"""
function {WRONG} (value) {{
  const first = FIRST
  const second = SECOND
  const kind = typeof value
  if (kind === 'number') {{
    if (value !== value || value - value !== 0) return first
    if (value % 1 !== 0) {{
      const near = +{WRONG}('' + value)
      return near !== near ? value + 1 : near
    }}
    const digit = value % 10
    const size = digit < 0 ? -digit : digit
    const other = (size + 1 + second % 9) % 10
    const made = value - digit + (value < 0 ? -other : other)
    return made === value ? value / 2 : made
  }}
  if (kind === 'string') {{
    const sets = ['0123456789', 'abcdef', 'ghijklmnopqrstuvwxyz', 'ABCDEF', 'GHIJKLMNOPQRSTUVWXYZ']
    const places = []
    for (let set = 0; set < sets.length; set++) {{
      for (let at = 0; at < value.length; at++) {{
        for (let n = 0; n < sets[set].length; n++) {{
          if (value[at] === sets[set][n]) places[places.length] = [at, sets[set], n]
        }}
      }}
      if (set === 0 && second % 2 === 0 && places.length > 0) break
    }}
    if (value === '') return '{WORD}'
    if (places.length === 0) return value + value[first % value.length]
    const [at, set, n] = places[(first + 7 * value.length) % places.length]
    let made = ''
    for (let each = 0; each < value.length; each++) {{
      made += each === at ? set[(n + 1 + second % (set.length - 1)) % set.length] : value[each]
    }}
    return made
  }}
  if (kind === 'boolean') return !value
  if (kind === 'bigint') return value + BigInt(1 + second)
  if (value === null || value === undefined) return second % 2 === 0 ? '{WORD}' : first
  if (kind === 'function') return function () {{}}
  if (Array.isArray(value)) {{
    if (value.length === 0) return [second % 2 === 0 ? '{WORD}' : first]
    const made = []
    for (let n = 0; n < value.length; n++) made[n] = n === first % value.length ? {WRONG}(value[n]) : value[n]
    return made
  }}
  if (value instanceof Date) return +value === +value ? new Date(+value + 86400000 * (1 + second)) : new Date(0)
  if (ArrayBuffer.isView(value) && value.length > 0) {{
    const made = value.constructor.from(value)
    made[first % made.length] = {WRONG}(made[first % made.length])
    return made
  }}
  const prototype = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== null) return null
  const keys = Object.keys(value)
  if (keys.length === 0) return {{ {WORD}: first }}
  const key = keys[first % keys.length]
  return {{ ...value, [key]: {WRONG}(value[key]) }}
}}
"""
"""The function: lists and objects are changed in one item, texts in one letter or digit, numbers in one digit."""
_PLACEHOLDER = re.compile("|".join((WORD, NUMBER, CLASS)).encode())


def fill(text: bytes, seed: str) -> bytes:
    """A test file with values in the places of placeholders, and with the function that they name."""
    rng = random.Random(f"{seed} {hashlib.sha256(text).hexdigest()}")
    if WRONG.encode() in text:
        first, second = str(rng.randrange(2, 1000)), str(rng.randrange(36))
        text += _HELPER.replace("FIRST", first).replace("SECOND", second).encode()
    name = f"{rng.choice(_NAMES)}{rng.randrange(16**4):04x}"
    values = {WORD: _WORDS, CLASS: _CLASSES, NUMBER: tuple(map(str, range(2, 1000)))}
    filled = _PLACEHOLDER.sub(lambda found: rng.choice(values[found[0].decode()]).encode(), text)
    return filled.replace(WRONG.encode(), name.encode())
