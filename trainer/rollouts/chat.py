"""Chat messages as tokens in the format of a model's chat template; each message is rendered once and appended.

The text that a template puts after an answer is found by rendering a short conversation around a marker. So no history
is rendered twice, and no sampled token is produced again from text. Some templates change the history (Qwen's removes
earlier thinking when the user speaks): :meth:`Chat.rewrites_history` detects that, and a new segment must begin.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from excise.agents.messages import Message, Request
from excise.agents.text_calls import with_text_tools
from excise.errors import ConfigError
from excise.trainer.interfaces import Tokenizer

ANSWER_MARKER = "\x02answer\x03"
THINKING_MARKER = "\x02thought\x03"
PLAIN_TEMPLATE = (
    "{% for m in messages %}### {{ m['role'] }}\n{{ m['content'] }}{{ eos_token }}\n{% endfor %}"
    "{% if add_generation_prompt %}### assistant\n{% endif %}"
)
"""Chat template for models without one."""
THINK_START, THINK_END = "<think>", "</think>"


class ChatTokenizer(Tokenizer, Protocol):
    """A tokenizer with a chat template."""

    chat_template: Any

    def apply_chat_template(self, conversation: Sequence[Mapping[str, Any]], **options: Any) -> Any:
        """Render a conversation as text."""
        ...


@dataclass(frozen=True, slots=True)
class PromptTokens:
    """Tokens that the model reads before its next answer."""

    body: tuple[int, ...]
    """Messages, preceded by the end of the previous answer if that was not sampled."""
    generation: tuple[int, ...]
    """The generation prompt: the tokens that start an assistant message."""


class Chat:
    """Renders messages for one tokenizer and one set of tools (schemas of :meth:`excise.agents.tool.Tool.schema`).

    Raises :class:`ConfigError` if the template does not contain the assistant's messages verbatim.
    """

    def __init__(self, tokenizer: ChatTokenizer, tools: Sequence[Mapping[str, Any]] = ()) -> None:
        self.tokenizer, self.tools = tokenizer, tuple(dict(tool) for tool in tools)
        template = str(tokenizer.chat_template or PLAIN_TEMPLATE)
        self._template = None if tokenizer.chat_template else PLAIN_TEMPLATE
        self.native = "tools" in template and "<tool_call>" in template
        """Whether the template itself describes tools and writes calls in ``<tool_call>`` tags."""
        after = self._after_answer_text([], generation=False)
        ids = self.encode(after)
        self.end_id = ids[0] if ids else tokenizer.eos_token_id
        self.stop_ids = tuple(dict.fromkeys([self.end_id, tokenizer.eos_token_id]))
        self._generation = self.encode(self._after_answer_text([], generation=True).removeprefix(after))
        self._opens_thinking = tokenizer.decode(self._generation).rstrip().endswith(THINK_START)

    def opening(self, messages: Sequence[Message]) -> PromptTokens:
        """The tokens of a whole conversation, with the generation prompt of the next answer."""
        whole = self.encode(self._render(messages, generation=True))
        size = len(self._generation)
        if whole[len(whole) - size :] != self._generation:
            raise ConfigError("The chat template asks for an answer differently from one conversation to another.")
        return PromptTokens(tuple(whole[: len(whole) - size]), tuple(self._generation))

    def after_answer(self, messages: Sequence[Message], *, ended: bool) -> PromptTokens:
        """Tokens to append to an answer that ``messages`` follow; ``ended``: its stop token was sampled."""
        ids = self.encode(self._after_answer_text(messages, generation=False))
        rest = ids[1:] if ended and ids[:1] == [self.end_id] else ids
        return PromptTokens(tuple(rest), tuple(self._generation))

    def user_message(self, text: str) -> tuple[int, ...]:
        """The tokens of one user message, to be inserted before a generation prompt (hints)."""
        before = self._after_answer_text([], generation=False)
        whole = self._after_answer_text([Message(role="user", content=text)], generation=False)
        return tuple(self.encode(whole.removeprefix(before)))

    def rewrites_history(self, role: str) -> bool:
        """Whether the template removes earlier thinking when a message of this role follows."""
        answer = f"{THINK_START}\n{THINKING_MARKER}\n{THINK_END}\n\n{ANSWER_MARKER}"
        conversation = [Message(role="user", content="."), Message(role="assistant", content=answer)]
        return THINKING_MARKER not in self._render([*conversation, Message(role=role, content=".")], generation=True)

    def answer_text(self, ids: Sequence[int]) -> str:
        """The text of an answer, without its stop token and with the thinking tag that its prompt opened."""
        kept = ids[:-1] if ids and ids[-1] in self.stop_ids else ids
        text = self.tokenizer.decode(list(kept), skip_special_tokens=False)
        missing_start = self._opens_thinking and THINK_END in text and THINK_START not in text
        return THINK_START + text if missing_start else text

    def encode(self, text: str) -> list[int]:
        """Token ids of a text that already contains its special tokens."""
        return list(self.tokenizer.encode(text, add_special_tokens=False))

    def _after_answer_text(self, messages: Sequence[Message], *, generation: bool) -> str:
        """The template's text after an answer that ``messages`` follow."""
        question, answer = Message(role="user", content="."), Message(role="assistant", content=ANSWER_MARKER)
        text = self._render([question, answer, *messages], generation=generation)
        if text.count(ANSWER_MARKER) != 1:
            raise ConfigError("The model's chat template does not give back what the assistant said.")
        return text.partition(ANSWER_MARKER)[2]

    def _render(self, messages: Sequence[Message], *, generation: bool) -> str:
        request = Request(model="", messages=tuple(messages), tools=self.tools)
        options: dict[str, Any] = {} if self._template is None else {"chat_template": self._template}
        if self.native and self.tools:
            options["tools"] = [{"type": "function", "function": tool} for tool in self.tools]
        elif self.tools:
            request = with_text_tools(request)
        plain = [{"role": message.role, "content": message.content} for message in request.messages]
        text = self.tokenizer.apply_chat_template(plain, tokenize=False, add_generation_prompt=generation, **options)
        return str(text)


def thinking_in(text: str) -> str:
    """The thinking part of an answer, with its tags; up to the end of the text if it was never closed."""
    if THINK_START not in text:
        return ""
    start = text.index(THINK_START)
    end = text.find(THINK_END, start)
    return text[start:] if end < 0 else text[start : end + len(THINK_END)]


def without_thinking(text: str) -> str:
    """An answer without its thinking part."""
    return text.replace(thinking_in(text), "", 1) if THINK_START in text else text
