"""Messages as tokens: appending gives the tokens of the template for the whole conversation."""

from __future__ import annotations

import pytest

from excise.agents.messages import Message
from excise.agents.tool import Tool
from excise.errors import ConfigError
from excise.trainer.rollouts.chat import Chat, thinking_in, without_thinking
from excise.trainer.rollouts.coding_tools import Finish, ReadFile

from ..byte_model import QWEN_LIKE, TEMPLATE, byte_tokenizer

TOOLS = [
    Tool(name=name, description="d", arguments=arguments, run=lambda _: "").schema()
    for name, arguments in (("read_file", ReadFile), ("finish", Finish))
]
MESSAGES = [Message(role="system", content="Be good."), Message(role="user", content="Hello?")]
TOOL_RESULTS = [Message(role="tool", content="one"), Message(role="tool", content="two")]


@pytest.mark.parametrize("template", [TEMPLATE, QWEN_LIKE, None])
@pytest.mark.parametrize("tools", [(), TOOLS])
def test_an_appended_conversation_has_the_tokens_of_the_template(template: str | None, tools: list[dict]) -> None:
    """A conversation that grows by appending has the tokens of one that is rendered at once."""
    tokenizer = byte_tokenizer(template)  # type: ignore[arg-type]
    chat = Chat(tokenizer, tools)
    opening = chat.opening(MESSAGES)
    answer = (*chat.encode("I look."), chat.end_id)
    bridge = chat.after_answer(TOOL_RESULTS, ended=True)
    grown = [*opening.body, *opening.generation, *answer, *bridge.body, *bridge.generation]
    whole = chat.opening([*MESSAGES, Message(role="assistant", content="I look."), *TOOL_RESULTS])
    assert grown == [*whole.body, *whole.generation]
    assert chat.native == (template == QWEN_LIKE)
    assert chat.answer_text(answer) == "I look."
    if tools:
        assert tokenizer.decode(list(opening.body)).count("read_file") == 1


@pytest.mark.parametrize("template", [TEMPLATE, QWEN_LIKE, None])
def test_an_answer_that_was_cut_off_gets_its_end_token(template: str | None) -> None:
    chat = Chat(byte_tokenizer(template))  # type: ignore[arg-type]
    cut, ended = (chat.after_answer(TOOL_RESULTS, ended=flag) for flag in (False, True))
    assert cut.body == (chat.end_id, *ended.body)


def test_a_hint_is_placed_before_the_generation_prompt() -> None:
    tokenizer = byte_tokenizer()
    chat = Chat(tokenizer)
    opening = chat.opening(MESSAGES)
    text = tokenizer.decode([*opening.body, *chat.user_message("Mind the gap."), *opening.generation])
    assert text.endswith("Hello?<|im_end|>\n<|im_start|>user\nMind the gap.<|im_end|>\n<|im_start|>assistant\n")


def test_a_template_that_drops_thinking_is_detected() -> None:
    qwen, plain = Chat(byte_tokenizer(QWEN_LIKE), TOOLS), Chat(byte_tokenizer(), TOOLS)
    assert qwen.rewrites_history("user")
    assert not qwen.rewrites_history("tool")
    assert not plain.rewrites_history("user")


def test_a_template_that_hides_answers_is_refused() -> None:
    with pytest.raises(ConfigError, match="does not give back"):
        Chat(byte_tokenizer("{% for m in messages %}{{ m.role }}{% endfor %}<|im_end|>"))


def test_thinking_is_separated_from_the_answer() -> None:
    text = "<think>\nwell\n</think>\n\n<tool_call>{}</tool_call>"
    assert thinking_in(text) == "<think>\nwell\n</think>"
    assert without_thinking(text) == "\n\n<tool_call>{}</tool_call>"
    assert thinking_in("<think>for ever") == "<think>for ever"
    assert thinking_in("none") == ""
