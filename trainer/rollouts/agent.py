"""The multi-turn agent: the model calls tools and reads their results until it finishes or a budget is used up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from excise.agents.messages import Message, ToolCall, tool_message
from excise.agents.text_calls import parse_calls
from excise.agents.tool import MalformedCall, Tool
from excise.protocols import Session
from excise.trainer.rollout_types import Ending, Generation, Stop
from excise.trainer.rollouts.chat import THINK_START, Chat, ChatTokenizer, thinking_in, without_thinking
from excise.trainer.rollouts.coding_tools import SYSTEM, Toolbox
from excise.trainer.rollouts.detectors import ToolCallResult, TurnObservation, detect
from excise.trainer.rollouts.rollout_maker import Attempt
from excise.types import Task

SUMMARISE = """The conversation is getting too long and begins anew after this answer. Sum up, for yourself, without
calling a tool: what was asked for, what you found out (files, names, decisions), what you changed, and what remains
to be done."""
CONTINUE_FROM_SUMMARY = (
    "You have been at this for a while. This is your own summary of it:\n\n{summary}\n\nGo on from there."
)
CUT_OFF = "Your answer was cut off: it was too long."
MIN_ANSWER_TOKENS = 16
"""Minimum token budget of an answer: with less left (or less than its limit, if lower), the rollout ends."""


class Agent:
    """Attempt mode with coding tools; one object serves all rollouts with a tokenizer."""

    def __init__(self, tokenizer: ChatTokenizer, system: str = SYSTEM) -> None:
        schemas = [tool.schema() for tool in Toolbox(cast(Session, None)).tools()]
        self.chat, self.system = Chat(tokenizer, schemas), system

    async def __call__(self, attempt: Attempt) -> Ending:
        """See :class:`excise.trainer.rollouts.rollout_maker.AttemptMode`."""
        return await _Conversation(self.chat, attempt, self.opening(attempt.sandbox.task)).run()

    def opening(self, task: Task) -> tuple[Message, ...]:
        """The first messages of a rollout."""
        return Message(role="system", content=self.system), Message(role="user", content=task.problem_statement)


class _Conversation:
    """One rollout: its messages, tools and the calls made so far."""

    def __init__(self, chat: Chat, attempt: Attempt, opening: tuple[Message, ...]) -> None:
        self.chat, self.attempt, self.opening = chat, attempt, opening
        settings = attempt.settings
        self.toolbox = Toolbox(attempt.sandbox.session, settings.command_s, settings.output_chars)
        self.tools: dict[str, Tool[Any]] = {tool.name: tool for tool in self.toolbox.tools()}
        self.messages: list[Message] = []
        self.earlier_calls: list[ToolCallResult] = []
        self.num_malformed = 0
        """Number of consecutive answers without a valid call."""

    async def run(self) -> Ending:
        self.begin_segment(self.opening)
        self.attempt.record_usage("prompt", len(self.attempt.recorder.ids))
        settings = self.attempt.settings
        for _ in range(settings.max_turns):
            answer = await self.sample(settings.answer_tokens)
            if isinstance(answer, Ending):
                return answer
            replies = await self.run_calls(answer)
            if isinstance(replies, Ending):
                return replies
            ended = answer.stop is Stop.END
            if settings.summary_at and len(self.attempt.recorder.ids) >= settings.summary_at:
                ending = await self.summarise(replies, ended=ended)
                if ending is not None:
                    return ending
            else:
                self.append(replies, ended=ended)
        return Ending.TURNS

    def begin_segment(self, messages: Sequence[Message]) -> None:
        """Start a segment whose prompt is a whole conversation."""
        self.messages = list(messages)
        self.attempt.recorder.add_context(self.chat.opening(messages))

    async def sample(self, longest: int) -> Generation | Ending:
        """The next answer of at most ``longest`` tokens, or the ending if a budget is used up."""
        budget = self.attempt.token_budget(longest)
        if budget < min(MIN_ANSWER_TOKENS, longest):
            return Ending.TOKENS
        answer = await self.attempt.sample(budget, self.chat.stop_ids)
        if answer is None:
            return Ending.TIME
        return answer if answer.ids else Ending.TOKENS

    async def run_calls(self, answer: Generation) -> list[Message] | Ending:
        """Run an answer's tool calls; the messages with their results, or the ending."""
        text = self.chat.answer_text(answer.ids)
        calls = parse_calls(without_thinking(text))
        self.record_answer(answer, text, calls)
        self.messages.append(Message(role="assistant", content=text))
        results: list[ToolCallResult] = []
        replies: list[Message] = []
        finished = False
        for call in calls:
            result = await self.attempt.run_blocking(self.run_call, call)
            results.append(result)
            replies.append(tool_message(call, result.result))
            finished = result.tool == "finish" and not result.malformed
            if finished:
                break
        await self.run_detectors(answer, text, results)
        self.earlier_calls += results
        self.num_malformed = 0 if any(not one.malformed for one in results) else self.num_malformed + 1
        if finished:
            return Ending.FINISHED
        if self.num_malformed >= self.attempt.settings.max_malformed:
            return Ending.MALFORMED
        if not replies:
            wanted = f"Answer with a call of a tool: {', '.join(self.tools)}."
            cut = f"{CUT_OFF} " if answer.stop is Stop.LENGTH else ""
            replies = [Message(role="user", content=cut + wanted)]
        return replies

    def append(self, replies: Sequence[Message], *, ended: bool) -> None:
        """Append messages to the segment, or begin a new one if the template would rewrite the history.

        ``ended``: the last answer's stop token was sampled.
        """
        self.messages += replies
        prompt = self.chat.after_answer(replies, ended=ended)
        self.attempt.record_usage("tool_output", len(prompt.body))
        role = replies[0].role if self.chat.native or replies[0].role != "tool" else "user"
        if any(THINK_START in m.content for m in self.messages) and self.chat.rewrites_history(role):
            self.attempt.recorder.close_segment()
            self.begin_segment(self.messages)
            return
        self.attempt.recorder.add_context(prompt)

    def run_call(self, call: ToolCall) -> ToolCallResult:
        """Run one tool call; blocks."""
        tool = self.tools.get(call.name)
        self.attempt.record_usage("num_calls", 1)
        try:
            if tool is None:
                problem = f"there is no tool {call.name!r}" if call.name else "this is no JSON object with a name"
                raise MalformedCall(f"{problem}; the tools are: {', '.join(self.tools)}")
            arguments = tool.parse(call.arguments)
        except MalformedCall as error:
            return ToolCallResult(
                tool=call.name, arguments=call.arguments, result=f"error: {error}", malformed=str(error)
            )
        self.toolbox.exit_code = 0
        self.toolbox.command_s = max(1.0, min(self.attempt.settings.command_s, self.attempt.seconds_left))
        before = len(self.toolbox.written)
        result = tool.call(arguments)
        return ToolCallResult(
            tool=call.name,
            arguments=call.arguments,
            result=result.text,
            failed=result.text.startswith("error: ") or self.toolbox.exit_code != 0,
            changed=tuple(self.toolbox.written[before:]),
        )

    def record_answer(self, answer: Generation, text: str, calls: Sequence[ToolCall]) -> None:
        """Add an answer to the recorder and its tokens to the usage, split into thinking, calls and the rest."""
        thought, rest = thinking_in(text), without_thinking(text)
        thinking = min(len(answer.ids), len(self.chat.encode(thought)) if thought else 0)
        after = rest.find("<tool_call>")
        in_calls = len(self.chat.encode(rest[after:])) if calls and after >= 0 else 0
        in_calls = min(len(answer.ids) - thinking, in_calls)
        self.attempt.record_usage("thinking", thinking)
        self.attempt.record_usage("calls", in_calls)
        self.attempt.record_usage("final", len(answer.ids) - thinking - in_calls)
        self.attempt.recorder.add_answer(answer, calls=len(calls), thinking=thinking)

    async def run_detectors(self, answer: Generation, text: str, results: Sequence[ToolCallResult]) -> None:
        """Run the detectors on the last answer and attach their hint to it."""
        settings = self.attempt.settings
        observation = TurnObservation(
            text=text,
            stop=answer.stop,
            calls=tuple(results),
            earlier_calls=tuple(self.earlier_calls),
            tools=tuple(self.tools),
            num_tokens=len(answer.ids),
            max_tokens=settings.answer_tokens,
            project_changed=await self.project_changed(results),
        )
        detector, hint = detect(observation, settings.detectors)
        if hint:
            self.attempt.add_hint(detector, hint, self.chat.user_message(hint))

    async def project_changed(self, results: Sequence[ToolCallResult]) -> bool:
        """Whether the project differs from the shipped tree. The diff is made only if the model called finish."""
        if self.toolbox.written or not any(one.tool == "finish" for one in results):
            return True
        return bool((await self.attempt.run_blocking(self.attempt.sandbox.diff)).strip())

    async def summarise(self, replies: Sequence[Message], *, ended: bool) -> Ending | None:
        """Ask the model for a summary and begin the next segment with it; the ending if a budget is used up."""
        recorder = self.attempt.recorder
        self.attempt.record_usage("tool_output", len(self.chat.after_answer(replies, ended=ended).body))
        request = [*replies, Message(role="user", content=SUMMARISE)]
        recorder.add_context(self.chat.after_answer(request, ended=ended))
        answer = await self.sample(self.attempt.settings.summary_tokens)
        if isinstance(answer, Ending):
            return answer
        text = self.chat.answer_text(answer.ids)
        self.record_answer(answer, text, ())
        self.attempt.record_usage("num_summaries", 1)
        recorder.close_segment(is_summary=True)
        summary = without_thinking(text).strip()
        self.begin_segment(
            [*self.opening, Message(role="user", content=CONTINUE_FROM_SUMMARY.replace("{summary}", summary))]
        )
        return None
