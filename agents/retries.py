"""The retry policy for requests to an endpoint: retryable failures, delays, and error messages for final failures."""

from __future__ import annotations

import email.utils
import random
import re
import time
from collections.abc import Mapping
from typing import Any

import openai

MAX_TRIES = 6
"""Maximum number of attempts for one request."""
BASE_S, MAX_BACKOFF_S = 0.5, 30.0
"""Seconds. First and longest delay of the exponential backoff."""
_RETRYABLE_STATUSES = frozenset({408, 409, 425, 429})
_CONTEXT_TOO_LONG = re.compile(
    r"context (length|window)|maximum context|too many tokens|max_tokens|prompt is too long", re.IGNORECASE
)
_QUOTA_EXHAUSTED = re.compile(r"insufficient_quota|billing|exceeded your current quota", re.IGNORECASE)


def is_retryable(error: openai.OpenAIError) -> bool:
    """Whether an error is temporary: rate limit, server error, timeout or lost connection, but no exhausted quota."""
    if isinstance(error, openai.APIStatusError):
        if _QUOTA_EXHAUSTED.search(str(error)):
            return False
        return error.status_code in _RETRYABLE_STATUSES or error.status_code >= 500
    return isinstance(error, (openai.APIConnectionError, openai.APIResponseValidationError))


def retry_delay_s(error: openai.OpenAIError | None, attempt: int) -> float:
    """Seconds to wait after an attempt (from 0): the ``Retry-After`` header, else exponential backoff with jitter."""
    headers = error.response.headers if isinstance(error, openai.APIStatusError) else {}
    requested_s = retry_after(headers)
    if requested_s is not None:
        return requested_s
    return float(min(MAX_BACKOFF_S, BASE_S * 2**attempt) * random.uniform(0.75, 1.0))


def retry_after(headers: Mapping[str, Any]) -> float | None:
    """Seconds given by a ``Retry-After`` header, as a number or as a date (RFC 9110, 10.2.3); ``None`` without one."""
    text = str(headers.get("retry-after", "")).strip()
    try:
        return max(0.0, float(text))
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except (TypeError, ValueError, IndexError, OverflowError):
        return None


def describe_failure(error: openai.OpenAIError, model: str, base_url: str, key_variable: str) -> tuple[str, str]:
    """Reason code and error message for a failure that is not retried; ``key_variable`` names the key's variable."""
    status = getattr(error, "status_code", 0)
    detail = str(error)[:500]
    if status in (401, 403):
        remedy = (
            f"Put a valid key into ${key_variable}"
            if key_variable
            else "Set model.api_key_env to the variable with the key"
        )
        return "model_unavailable", f"{base_url} refuses the key. {remedy}. It says: {detail}"
    if status == 404:
        return "model_unavailable", f"{base_url} has no model {model!r}, or is no such endpoint. It says: {detail}"
    if status in (400, 413, 422) and _CONTEXT_TOO_LONG.search(detail):
        return "budget", f"The conversation is too long for {model}. Lower model.context_chars. It says: {detail}"
    if status == 429:
        return "model_unavailable", f"The quota at {base_url} is used up, or its rate limit lasts. It says: {detail}"
    if status:
        return "model_unavailable", f"{base_url} refuses the request with status {status}. It says: {detail}"
    return "model_unavailable", f"{base_url} cannot be reached. Is model.base_url right, and the server up? {detail}"
