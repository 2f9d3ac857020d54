"""The client of an OpenAI-compatible endpoint: retries with a deadline, budgets, and a key that stays here."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping

import openai

from excise.agents.budget import Meter
from excise.agents.chat_format import estimated_tokens, from_wire, to_wire
from excise.agents.messages import Reply, Request
from excise.agents.retries import MAX_TRIES, meaning, wait_s, worth_retrying
from excise.agents.text_calls import as_text
from excise.config import ModelSettings
from excise.errors import AgentError

logger = logging.getLogger(__name__)

HIDDEN = "[key]"
"""Stands in error messages in place of the key."""
MIN_CALL_S = 1.0
"""Seconds. Shortest timeout of one call."""


class OpenAIClient:
    """Answers requests over the network; see :class:`excise.agents.messages.Client`.

    ``meter`` counts what every answer takes and is looked at before each request. Raises :class:`AgentError`.
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
        """The answer to a request; temporary failures are retried within the budget. Raises :class:`AgentError`."""
        asked = as_text(request) if self.settings.tool_calls == "text" else request
        failure: openai.OpenAIError | None = None
        for number in range(MAX_TRIES):
            if number:
                detail = self._clean(str(failure))
                logger.info("request to the model retried", extra={"attempt": number + 1, "detail": detail})
                self._wait(failure, number - 1)
            self.meter.check()
            try:
                reply = self._once(asked)
            except openai.OpenAIError as error:
                failure = error
                if not worth_retrying(error):
                    break
                continue
            if reply is not None:
                return reply
            failure = None  # a response without an answer counts as an error of the server
        raise self._final_error(failure)

    def _once(self, request: Request) -> Reply | None:
        tokens = self.meter.reply_tokens(request.max_reply_tokens, estimated_tokens(request))
        timeout = max(MIN_CALL_S, min(self.settings.call_timeout_s, self.meter.left_s()))
        try:
            completion = self._client.chat.completions.create(**to_wire(request, tokens), timeout=timeout)
        except ValueError:  # a body that is no JSON
            return None
        reply = from_wire(completion, request, self._clean)
        if reply is not None:
            self.meter.add(reply.usage)
        return reply

    def _wait(self, failure: openai.OpenAIError | None, number: int) -> None:
        seconds = wait_s(failure, number)
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
        reason, text = meaning(failure, settings.model, settings.base_url, settings.api_key_env)
        return AgentError(self._clean(text), reason=reason)

    def _clean(self, text: str) -> str:
        """Text of the server without the key, which it might repeat."""
        return text.replace(self._key, HIDDEN) if self._key else text


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
