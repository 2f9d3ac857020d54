"""Retries of requests to an endpoint: which failures are retried, after how long, and error messages for the others."""

from __future__ import annotations

import email.utils
import random
import re
import time
from collections.abc import Mapping
from typing import Any

import openai

MAX_TRIES = 6
BASE_S, MAX_BACKOFF_S = 0.5, 30.0
_AGAIN = frozenset({408, 409, 425, 429})
_FULL = re.compile(
    r"context (length|window)|maximum context|too many tokens|max_tokens|prompt is too long", re.IGNORECASE
)
_QUOTA = re.compile(r"insufficient_quota|billing|exceeded your current quota", re.IGNORECASE)


def worth_retrying(error: openai.OpenAIError) -> bool:
    """Rate limits, server errors, time-outs and lost connections; but not a quota that is used up."""
    if isinstance(error, openai.APIStatusError):
        if _QUOTA.search(str(error)):
            return False
        return error.status_code in _AGAIN or error.status_code >= 500
    return isinstance(error, (openai.APIConnectionError, openai.APIResponseValidationError))


def wait_s(error: openai.OpenAIError | None, number: int) -> float:
    """Seconds to wait after try ``number`` (from 0): what the server asks for, else exponential with jitter."""
    headers = error.response.headers if isinstance(error, openai.APIStatusError) else {}
    asked = retry_after(headers)
    if asked is not None:
        return asked
    return float(min(MAX_BACKOFF_S, BASE_S * 2**number) * random.uniform(0.75, 1.0))


def retry_after(headers: Mapping[str, Any]) -> float | None:
    """Seconds that a ``Retry-After`` header asks for, in either of its forms (RFC 9110, 10.2.3)."""
    text = str(headers.get("retry-after", "")).strip()
    try:
        return max(0.0, float(text))
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except (TypeError, ValueError, IndexError, OverflowError):
        return None


def meaning(error: openai.OpenAIError, model: str, base_url: str, key_from: str) -> tuple[str, str]:
    """Reason and sentence for a failure that is not tried again."""
    status = getattr(error, "status_code", 0)
    said = str(error)[:500]
    if status in (401, 403):
        where = (
            f"Put a valid key into ${key_from}" if key_from else "Set model.api_key_env to the variable with the key"
        )
        return "model_unavailable", f"{base_url} refuses the key. {where}. It says: {said}"
    if status == 404:
        return "model_unavailable", f"{base_url} has no model {model!r}, or is no such endpoint. It says: {said}"
    if status in (400, 413, 422) and _FULL.search(said):
        return "budget", f"The conversation is too long for {model}. Lower model.context_chars. It says: {said}"
    if status == 429:
        return "model_unavailable", f"The quota at {base_url} is used up, or its rate limit lasts. It says: {said}"
    if status:
        return "model_unavailable", f"{base_url} refuses the request with status {status}. It says: {said}"
    return "model_unavailable", f"{base_url} cannot be reached. Is model.base_url right, and the server up? {said}"
