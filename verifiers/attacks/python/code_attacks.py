"""Attacks whose code stands in the feature's own file."""

from __future__ import annotations

from excise.verifiers.attacks.attack import Attack


def at_import(name: str, vector: str, code: str) -> Attack:
    """An attack whose code runs when the feature's file is imported."""
    return Attack(name=f"import-{name}", vector=vector, make=lambda target: target.with_code(code))


def on_call(name: str, vector: str, code: str) -> Attack:
    """An attack whose code defines the function ``answer``, to which every missing name is bound."""
    return Attack(name=f"answer-{name}", vector=vector, make=lambda target: target.with_names_bound("answer", code))
