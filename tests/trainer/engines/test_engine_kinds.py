"""Engines that are built from the settings of a run."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from excise.errors import EngineError
from excise.trainer.engines.engine_kinds import EngineSettings, build_engine
from excise.trainer.rollout_types import Sampling

from ..byte_model import byte_model


def test_an_engine_is_built_from_its_settings(tmp_path: Path) -> None:
    byte_model().save_pretrained(tmp_path / "model")

    async def go() -> Any:
        engine = await build_engine(EngineSettings(context_length=4000, device="cpu"), tmp_path / "model")
        answers = await engine.generate([[1, 2]], Sampling(max_tokens=3))
        length = engine.context_length
        await engine.close()
        with pytest.raises(EngineError, match="no model"):
            await build_engine(EngineSettings(), tmp_path)
        with pytest.raises(EngineError, match="ended while it was starting"):
            await build_engine(EngineSettings(kind="vllm-server", python=tmp_path / "python"), tmp_path / "model")
        return len(answers[0].ids), length

    assert asyncio.run(go()) == (3, 512)
