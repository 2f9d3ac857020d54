"""A key-value cache whose rows can be added and removed, in buffers that grow by doubling.

Rows are padded on the left, so that all of them get their next token in the same column. With ``torch.cat``, each token
would copy the whole cache.
"""

from __future__ import annotations

import torch
from transformers.cache_utils import Cache, CacheLayerMixin

HEADROOM = 64
"""Unused columns of a new buffer."""


class GrowingLayer(CacheLayerMixin):  # type: ignore[misc]
    """Keys and values of one attention layer, ``[rows, heads, columns, head size]``, in buffers with spare columns."""

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Start empty, with the shape, dtype and device of the first states."""
        self.length = 0
        self._buffers = (key_states[:, :, :0], value_states[:, :, :0])
        self.is_initialized = True

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_args: object, **_kwargs: object
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Append columns; returns all keys and values."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        end = self.length + key_states.shape[2]
        if end > self._buffers[0].shape[2]:
            capacity = max(end + HEADROOM, 2 * self.length)
            self.fill_from([self], end=self.length, capacity=capacity)
        for buffer, states in zip(self._buffers, (key_states, value_states), strict=True):
            buffer[:, :, self.length : end] = states
        self.length = end
        return self._views()

    def _views(self) -> tuple[torch.Tensor, torch.Tensor]:
        keys, values = self._buffers
        return keys[:, :, : self.length], values[:, :, : self.length]

    def fill_from(self, parts: list[GrowingLayer], *, end: int, capacity: int) -> None:
        """Copy the rows of ``parts`` into new buffers of ``capacity`` columns, each row ending at column ``end``."""
        buffers = []
        for number in range(2):
            old = [part._views()[number] for part in parts]
            first = old[0]
            new = first.new_zeros(sum(o.shape[0] for o in old), first.shape[1], capacity, first.shape[3])
            row = 0
            for states in old:
                new[row : row + states.shape[0], :, end - states.shape[2] : end] = states
                row += states.shape[0]
            buffers.append(new)
        self._buffers = (buffers[0], buffers[1])
        self.length, self.is_initialized = end, True

    def select(self, rows: torch.Tensor, first: int) -> None:
        """Keep (or repeat) ``rows`` and drop the columns before ``first``."""
        keys, values = (states[:, :, first:].index_select(0, rows) for states in self._views())
        self._buffers, self.length = (keys, values), self.length - first

    def row(self, row: int, first: int, end: int) -> GrowingLayer:
        """A copy of the columns ``[first, end)`` of one row."""
        copy = GrowingLayer()
        keys, values = (states[row : row + 1, :, first:end].clone() for states in self._views())
        copy._buffers, copy.length, copy.is_initialized = (keys, values), end - first, True
        return copy

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Number of columns once the query is appended, and the offset of the first one (0)."""
        return self.get_seq_length() + query_length, 0

    def get_seq_length(self) -> int:
        """Number of columns."""
        return self.length if self.is_initialized else 0

    def get_max_length(self) -> int:
        """-1: unlimited."""
        return -1


def new_cache() -> Cache:
    """An empty cache for any number of layers."""
    return Cache(layer_class_to_replicate=GrowingLayer)


def stack_rows(parts: list[Cache]) -> Cache:
    """One cache with the rows of several caches."""
    whole = new_cache()
    end = max(part.get_seq_length() for part in parts)
    for number in range(len(parts[0].layers)):
        layer = GrowingLayer()
        layer.fill_from([part.layers[number] for part in parts], end=end, capacity=end + HEADROOM)
        whole.layers.append(layer)
    return whole


def copy_row(cache: Cache, row: int, first: int, end: int) -> Cache:
    """A copy of the columns ``[first, end)`` of one row."""
    whole = new_cache()
    for layer in cache.layers:
        whole.layers.append(layer.row(row, first, end))
    return whole


def select(cache: Cache, rows: torch.Tensor, first: int = 0) -> None:
    """Keep (or repeat) ``rows`` of a cache, and drop the columns before ``first``."""
    for layer in cache.layers:
        layer.select(rows, first)
