"""Special methods that can be deleted alone: without them, only the operation that they implement is missing."""

from __future__ import annotations

REMOVABLE = frozenset(
    f"__{name}__"
    for line in (
        "repr str bytes format len contains iter next reversed getitem setitem delitem missing call enter exit",
        "aenter aexit aiter anext await copy deepcopy bool int float complex index round trunc floor ceil abs neg pos",
        "invert lt le gt ge add sub mul matmul truediv floordiv mod divmod pow lshift rshift and or xor",
        "radd rsub rmul rmatmul rtruediv rfloordiv rmod rdivmod rpow rlshift rrshift rand ror rxor",
        "iadd isub imul imatmul itruediv ifloordiv imod ipow ilshift irshift iand ior ixor",
        "dir sizeof length_hint fspath reduce reduce_ex getstate setstate",
    )
    for name in line.split()
)


def is_removable(name: str) -> bool:
    """Whether a method with this name can be deleted alone: Python itself calls some others."""
    plain = name.partition("#")[0]
    return not (plain.startswith("__") and plain.endswith("__")) or plain in REMOVABLE
