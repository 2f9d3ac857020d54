"""Client for an OpenAI-compatible endpoint with retries, timeouts and a budget. The API key stays in this module."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping

import openai

from excise.agents.budget import Meter
from excise.agents.chat_format import estimated_tokens, from_wire, to_wire
from excise.agents.messages import Reply, Request
from excise.agents.retries import MAX_TRIES, describe_failure, is_retryable, retry_delay_s
from excise.agents.text_calls import with_text_tools
from excise.config import ModelSettings
from excise.errors import AgentError

logger = logging.getLogger(__name__)

REDACTED_KEY = "[key]"
"""Replaces the key in replies and error messages."""
MIN_CALL_S = 1.0
"""Shortest timeout of one call in seconds."""


class OpenAIClient:
    """Sends requests over the network; see :class:`excise.agents.messages.Client`.

    ``meter`` counts the tokens of every reply and is checked before each request. Raises :class:`AgentError` if the
    settings name no endpoint or the variable with the key is not set.
    """

    def __init__(
        self,
        settings: ModelSettings,
        meter: Meter,
        *,
        environ: Mapping[str, str] = os.environ,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.settings, self.meter, self.sleep = settings, meter, sleep
        self._key = _key(settings, environ)
        self._client = openai.OpenAI(
            base_url=settings.base_url,
            api_key=self._key or "none",
            max_retries=0,
        )

    def complete(self, request: Request) -> Reply:
        """The reply to a request; temporary failures are retried within the budget. Raises :class:`AgentError`."""
        prepared = with_text_tools(request) if self.settings.tool_calls == "text" else request
        failure: openai.OpenAIError | None = None
        for attempt in range(MAX_TRIES):
            if attempt:
                detail = self._redact(str(failure))
                logger.info("request to the model retried", extra={"attempt": attempt + 1, "detail": detail})
                self._wait(failure, attempt - 1)
            self.meter.check()
            try:
                reply = self._send(prepared)
            except openai.OpenAIError as error:
                failure = error
                if not is_retryable(error):
                    break
                continue
            if reply is not None:
                return reply
            failure = None  # a response without a message counts as a server error
        raise self._final_error(failure)

    def _send(self, request: Request) -> Reply | None:
        """Send a request once; ``None`` if the response holds no message."""
        tokens = self.meter.reply_tokens(request.max_reply_tokens, estimated_tokens(request))
        timeout = max(MIN_CALL_S, min(self.settings.call_timeout_s, self.meter.left_s()))
        try:
            completion = self._client.chat.completions.create(**to_wire(request, tokens), timeout=timeout)
        except ValueError:  # the body is not JSON
            return None
        reply = from_wire(completion, request, self._redact)
        if reply is not None:
            self.meter.add(reply.usage)
        return reply

    def _wait(self, failure: openai.OpenAIError | None, attempt: int) -> None:
        """Wait before the next attempt. Raises :class:`AgentError` if that exceeds the job's time limit."""
        if not self.meter.left_s():
            raise AgentError(
                f"{self.settings.base_url} did not answer within the job's {self.meter.budget.max_wall_s:.0f} s. "
                "Run again when the endpoint is faster, or raise model.max_wall_s.",
                reason="model_unavailable",
            )
        seconds = retry_delay_s(failure, attempt)
        if seconds >= self.meter.left_s():
            raise AgentError(
                f"{self.settings.base_url} asks to wait {seconds:.0f} s, longer than the job may run. "
                "Run again later, or raise model.max_wall_s.",
                reason="model_unavailable",
            )
        self.sleep(seconds)

    def _final_error(self, failure: openai.OpenAIError | None) -> AgentError:
        if failure is None:
            return AgentError(
                f"{self.settings.base_url} answers without an answer, {MAX_TRIES} times. Is it an OpenAI-compatible "
                "endpoint, and does model.base_url end where it should (often in /v1)?"
            )
        settings = self.settings
        reason, text = describe_failure(failure, settings.model, settings.base_url, settings.api_key_env)
        return AgentError(self._redact(text), reason=reason)

    def _redact(self, text: str) -> str:
        """Text of the server with the key replaced: some servers repeat it."""
        return text.replace(self._key, REDACTED_KEY) if self._key else text


def _key(settings: ModelSettings, environ: Mapping[str, str]) -> str:
    if not settings.base_url:
        raise AgentError("No endpoint is configured. Set model.base_url, for example http://localhost:8000/v1.")
    if not settings.api_key_env:
        return ""
    key = environ.get(settings.api_key_env, "").strip()
    if not key:
        raise AgentError(
            f"The environment variable {settings.api_key_env} is not set. Put the key of {settings.base_url} into it, "
            "or empty model.api_key_env."
        )
    return key
