"""Checks that a Hugging Face model folder is complete, without loading the weights; loads its tokenizer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from excise.errors import ConfigError

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
"""Name of the file that lists the files of split weights."""


def require_model(folder: Path) -> str:
    """Check a model's folder; returns a description of the model (type and size).

    Raises :class:`ConfigError` if configuration, tokenizer or weights are missing or broken. Only the headers of the
    weights are read.
    """
    from transformers import AutoConfig

    _require_config(folder)
    try:
        kind = AutoConfig.from_pretrained(folder).model_type
    except Exception as error:  # the configuration classes of models may raise anything
        raise ConfigError(f"{folder / 'config.json'}: no model that can be used: {_line(error)}") from error
    size = sum(_size(path) for path in _files(folder))
    load_tokenizer(folder)
    return f"{kind}, {size / 1e6:.0f} MB of weights"


def load_tokenizer(folder: Path) -> Any:
    """The tokenizer of a model's folder. Raises :class:`ConfigError`."""
    from transformers import AutoTokenizer

    _require_config(folder)
    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    except Exception as error:  # a damaged file raises a bare Exception
        raise ConfigError(f"{folder}: no tokenizer can be loaded from it: {_line(error)}") from error
    if not tokenizer.encode("a", add_special_tokens=False):
        raise ConfigError(f"{folder}: no tokenizer in it that knows any word. Is its tokenizer.json there?")
    return tokenizer


def _require_config(folder: Path) -> None:
    if not (folder / "config.json").is_file():
        raise ConfigError(f"{folder}: no model here. Give a folder with config.json, {WEIGHTS} and a tokenizer.")


def _files(folder: Path) -> list[Path]:
    """The files that hold the weights."""
    if (folder / WEIGHTS).exists():
        return [folder / WEIGHTS]
    index = folder / INDEX
    try:
        shards = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
        return [folder / name for name in sorted(shards)]
    except FileNotFoundError:
        raise ConfigError(f"{folder}: no weights in it: {WEIGHTS}, or {INDEX} and the files that it names.") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(f"{index}: cannot be read ({_line(error)}). Copy or save the model again.") from error


def _size(path: Path) -> int:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "np"):
            return path.stat().st_size
    except (OSError, SafetensorError) as error:
        raise ConfigError(
            f"{path}: these weights cannot be read ({_line(error)}). Copy or save the model again."
        ) from error


def _line(error: Exception) -> str:
    """The message of an error in one line."""
    return " ".join(str(error).split())
