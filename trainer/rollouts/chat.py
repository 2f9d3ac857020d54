"""Messages as tokens, written as a model's chat template has them, each rendered once and appended.

What a template puts behind an answer is found by rendering a short conversation around a marker, so that no history is
rendered twice and no sampled token is ever made again from text. Where the template would write the history anew
(Qwen's drops earlier thinking as the user speaks), :meth:`Chat.rewrites` says so, and a new segment begins.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from excise.agents.messages import Message, Request
from excise.agents.text_calls import as_text
from excise.errors import ConfigError
from excise.trainer.interfaces import Tokenizer

MARK = "\x02answer\x03"
THOUGHT = "\x02thought\x03"
PLAIN = (
    "{% for m in messages %}### {{ m['role'] }}\n{{ m['content'] }}{{ eos_token }}\n{% endfor %}"
    "{% if add_generation_prompt %}### assistant\n{% endif %}"
)
"""The template of models that have none."""
THINK, THOUGHT_OUT = "<think>", "</think>"


class ChatTokenizer(Tokenizer, Protocol):
    """A tokenizer that renders messages."""

    chat_template: Any

    def apply_chat_template(self, conversation: Sequence[Mapping[str, Any]], **options: Any) -> Any:
        """The text of a conversation."""
        ...


@dataclass(frozen=True, slots=True)
class Bridge:
    """Tokens between an answer and the next one."""

    body: tuple[int, ...]
    """The answer's end, where it was not sampled, and the messages after it."""
    generation: tuple[int, ...]
    """What asks for the next answer."""


class Chat:
    """Renders for one tokenizer and one set of tools (schemas as :meth:`excise.agents.tool.Tool.schema` has them).

    Raises :class:`ConfigError` if the template does not give back what an assistant said.
    """

    def __init__(self, tokenizer: ChatTokenizer, tools: Sequence[Mapping[str, Any]] = ()) -> None:
        self.tokenizer, self.tools = tokenizer, tuple(dict(tool) for tool in tools)
        template = str(tokenizer.chat_template or PLAIN)
        self._template = None if tokenizer.chat_template else PLAIN
        self.native = "tools" in template and "<tool_call>" in template
        """The template itself tells of tools, with calls in tags."""
        behind = self._behind([], generation=False)
        ids = self.encode(behind)
        self.end_id = ids[0] if ids else tokenizer.eos_token_id
        self.stop_ids = tuple(dict.fromkeys([self.end_id, tokenizer.eos_token_id]))
        self._generation = self.encode(self._behind([], generation=True).removeprefix(behind))
        self._opened = tokenizer.decode(self._generation).rstrip().endswith(THINK)

    def opening(self, messages: Sequence[Message]) -> Bridge:
        """The tokens of a whole conversation, up to what asks for the next answer."""
        whole = self.encode(self._render(messages, generation=True))
        size = len(self._generation)
        if whole[len(whole) - size :] != self._generation:
            raise ConfigError("The chat template asks for an answer differently from one conversation to another.")
        return Bridge(tuple(whole[: len(whole) - size]), tuple(self._generation))

    def after_answer(self, messages: Sequence[Message], *, ended: bool) -> Bridge:
        """What is appended to an answer when ``messages`` follow it; ``ended``: its end was sampled with it."""
        ids = self.encode(self._behind(messages, generation=False))
        rest = ids[1:] if ended and ids[:1] == [self.end_id] else ids
        return Bridge(tuple(rest), tuple(self._generation))

    def remark(self, text: str) -> tuple[int, ...]:
        """A message of the user alone, to be put before what asks for an answer."""
        before = self._behind([], generation=False)
        whole = self._behind([Message(role="user", content=text)], generation=False)
        return tuple(self.encode(whole.removeprefix(before)))

    def rewrites(self, role: str) -> bool:
        """Whether a message of this role makes the template leave out what was thought before."""
        answer = f"{THINK}\n{THOUGHT}\n{THOUGHT_OUT}\n\n{MARK}"
        said = [Message(role="user", content="."), Message(role="assistant", content=answer)]
        return THOUGHT not in self._render([*said, Message(role=role, content=".")], generation=True)

    def said(self, ids: Sequence[int]) -> str:
        """The text of an answer, without the token that ended it."""
        kept = ids[:-1] if ids and ids[-1] in self.stop_ids else ids
        text = self.tokenizer.decode(list(kept), skip_special_tokens=False)
        return THINK + text if self._opened and THOUGHT_OUT in text and THINK not in text else text

    def encode(self, text: str) -> list[int]:
        """Ids of a text that already has its special tokens."""
        return list(self.tokenizer.encode(text, add_special_tokens=False))

    def _behind(self, messages: Sequence[Message], *, generation: bool) -> str:
        """The text behind an answer that ``messages`` follow."""
        said = [Message(role="user", content="."), Message(role="assistant", content=MARK), *messages]
        text = self._render(said, generation=generation)
        if text.count(MARK) != 1:
            raise ConfigError("The model's chat template does not give back what the assistant said.")
        return text.partition(MARK)[2]

    def _render(self, messages: Sequence[Message], *, generation: bool) -> str:
        request = Request(model="", messages=tuple(messages), tools=self.tools)
        options: dict[str, Any] = {} if self._template is None else {"chat_template": self._template}
        if self.native and self.tools:
            options["tools"] = [{"type": "function", "function": tool} for tool in self.tools]
        elif self.tools:
            request = as_text(request)
        plain = [{"role": message.role, "content": message.content} for message in request.messages]
        text = self.tokenizer.apply_chat_template(plain, tokenize=False, add_generation_prompt=generation, **options)
        return str(text)


def thinking_in(text: str) -> str:
    """What was thought in an answer, marks included; all of it if the thinking never ended."""
    if THINK not in text:
        return ""
    start = text.index(THINK)
    end = text.find(THOUGHT_OUT, start)
    return text[start:] if end < 0 else text[start : end + len(THOUGHT_OUT)]


def without_thinking(text: str) -> str:
    """An answer without what was thought in it."""
    return text.replace(thinking_in(text), "", 1) if THINK in text else text
