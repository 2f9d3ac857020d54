"""Copies of JavaScript and TypeScript are found by how definitions begin."""

from __future__ import annotations

import pytest

from excise.verifiers.recovery.inside.script_copies import definition_of


@pytest.mark.parametrize(
    "line",
    [
        "export function pack(a) {",
        "export function pack<T>(a: T): T {",
        "  pack(a) {",
        "  public static pack(a: any): void {",
        "  async pack<T>(a: T): Promise<Map<string, T>> {",
        "const pack = (a) => a",
        "export const pack: Packer<T> = (a) => a",
        "const pack = <T,>(a: T): T => a",
        "exports.pack = function (a) {",
        "class pack extends Box {",
    ],
)
def test_definitions_of_every_form_are_found(line: str) -> None:
    assert definition_of(["pack"]).search(line)


@pytest.mark.parametrize(
    "line", ["  pack(a)", "return pack(a) + 1", "import { pack } from './pack'", "if (pack === 1) {"]
)
def test_uses_are_no_definitions(line: str) -> None:
    assert not definition_of(["pack"]).search(line)
