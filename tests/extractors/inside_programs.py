"""The modules that run inside sandboxes, loaded into this process, and a plain class for values."""

from __future__ import annotations

import builtins
import importlib.util
import sys
from types import ModuleType
from typing import Any

import pytest

from excise.extractors.python.execution.pytest_runner import INSIDE


def load(name: str) -> ModuleType:
    """Load a module of ``inside/`` by its name."""
    spec = importlib.util.spec_from_file_location(name, INSIDE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(name, module)
    spec.loader.exec_module(module)
    return module


values = load("excise_values")
decoding = load("excise_decode")
outcomes = load("excise_outcomes")
load("excise_trampolines")  # which the recorder imports, wherever it is loaded
doctests = load("excise_doctests")  # so is this
DECODERS = dict(decoding.DECODERS)
"""The decoders before ``excise_lifted`` is loaded, which puts its own in their place."""


class Plain:
    """An object with one attribute, equal by type and value."""

    def __init__(self, x: object) -> None:
        self.x = x

    def __eq__(self, other: object) -> bool:
        return type(other) is Plain and self.x == other.x

    __hash__ = None  # type: ignore[assignment]


def recorded_module(monkeypatch: pytest.MonkeyPatch, name: str, code: str) -> tuple[Any, Any]:
    """A module of this name with some code, and a recorder that watches nothing of it yet."""
    monkeypatch.setattr(sys, "path", [str(INSIDE), *sys.path])
    monkeypatch.setitem(sys.modules, "excise_values", values)
    module = ModuleType(name)
    monkeypatch.setitem(sys.modules, name, module)
    exec(code, module.__dict__)
    inside = load("excise_recorder")
    recorder = inside.Recorder()
    monkeypatch.setattr(builtins, inside.NAME, recorder.called, raising=False)
    return module, recorder
