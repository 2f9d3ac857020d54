"""Environment variables of sandboxes with a virtual environment."""

from __future__ import annotations

from excise.envs.sandbox.mount_points import ENV

VIRTUAL_ENVIRONMENT = {"VIRTUAL_ENV": ENV}
"""The mark of an activated virtual environment."""
