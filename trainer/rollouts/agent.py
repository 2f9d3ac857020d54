"""The multi-turn agent: answers, calls of tools, what they gave back, until it is done or a budget is used up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from excise.agents.messages import Message, ToolCall, tool_message
from excise.agents.text_calls import calls_in
from excise.agents.tool import MalformedCall, Tool
from excise.protocols import Session
from excise.trainer.rollout_types import Ending, Generation, Stop
from excise.trainer.rollouts.chat import THINK, Chat, ChatTokenizer, thinking_in, without_thinking
from excise.trainer.rollouts.coding_tools import Toolbox
from excise.trainer.rollouts.detectors import Acted, Seen, detect
from excise.trainer.rollouts.rollout_maker import Attempt
from excise.types import Task

SYSTEM = """You are a programmer at work in the checkout of a Python project, at /testbed. You see and change it with
tools. Look at the code around what you are asked for, write it, and check it by running code or tests. There is no
network. Leave the tests that are there as they are. When the work is done, call finish."""
SUM_UP = """The conversation is getting too long and begins anew after this answer. Sum up, for yourself, without
calling a tool: what was asked for, what you found out (files, names, decisions), what you changed, and what remains
to be done."""
GO_ON = "You have been at this for a while. This is your own summary of it:\n\n{summary}\n\nGo on from there."
CUT_OFF = "Your answer was cut off: it was too long."
MIN_ROOM = 16
"""With less room for an answer, the rollout ends."""


class Agent:
    """The work of an agent with coding tools; one for all rollouts with a tokenizer."""

    def __init__(self, tokenizer: ChatTokenizer, system: str = SYSTEM) -> None:
        schemas = [tool.schema() for tool in Toolbox(cast(Session, None)).tools()]
        self.chat, self.system = Chat(tokenizer, schemas), system

    async def __call__(self, attempt: Attempt) -> Ending:
        """See :class:`excise.trainer.rollouts.rollout_maker.Work`."""
        return await _Talk(self.chat, attempt, self.opening(attempt.desk.task)).go()

    def opening(self, task: Task) -> tuple[Message, ...]:
        """The messages that a rollout begins with."""
        return Message(role="system", content=self.system), Message(role="user", content=task.problem_statement)


class _Talk:
    def __init__(self, chat: Chat, attempt: Attempt, opening: tuple[Message, ...]) -> None:
        self.chat, self.attempt, self.opening = chat, attempt, opening
        settings = attempt.settings
        self.box = Toolbox(attempt.desk.session, settings.command_s, settings.output_chars)
        self.tools: dict[str, Tool[Any]] = {tool.name: tool for tool in self.box.tools()}
        self.messages: list[Message] = []
        self.acted: list[Acted] = []
        self.malformed = 0

    async def go(self) -> Ending:
        self.begin(self.opening)
        self.attempt.spend("prompt", len(self.attempt.trace.ids))
        settings = self.attempt.settings
        for _ in range(settings.max_turns):
            answer = await self.ask(settings.answer_tokens)
            if isinstance(answer, Ending):
                return answer
            replies = await self.act(answer)
            if isinstance(replies, Ending):
                return replies
            ended = answer.stop is Stop.END
            if settings.summary_at and len(self.attempt.trace.ids) >= settings.summary_at:
                ending = await self.sum_up(replies, ended=ended)
                if ending is not None:
                    return ending
            else:
                self.say(replies, ended=ended)
        return Ending.TURNS

    def begin(self, messages: Sequence[Message]) -> None:
        """A segment whose prompt is a whole conversation."""
        self.messages = list(messages)
        self.attempt.trace.given(self.chat.opening(messages))

    async def ask(self, longest: int) -> Generation | Ending:
        room = self.attempt.room(longest)
        if room < min(MIN_ROOM, longest):
            return Ending.TOKENS
        answer = await self.attempt.sample(room, self.chat.stop_ids)
        if answer is None:
            return Ending.TIME
        return answer if answer.ids else Ending.TOKENS

    async def act(self, answer: Generation) -> list[Message] | Ending:
        """Carry out what an answer asks for: what came of it, for the model."""
        text = self.chat.said(answer.ids)
        calls = calls_in(without_thinking(text))
        self.count(answer, text, calls)
        self.messages.append(Message(role="assistant", content=text))
        acted: list[Acted] = []
        replies: list[Message] = []
        finished = False
        for call in calls:
            done = await self.attempt.in_thread(self.call, call)
            acted.append(done)
            replies.append(tool_message(call, done.result))
            finished = done.tool == "finish" and not done.malformed
            if finished:
                break
        await self.look(answer, text, acted)
        self.acted += acted
        self.malformed = 0 if any(not a.malformed for a in acted) else self.malformed + 1
        if finished:
            return Ending.FINISHED
        if self.malformed >= self.attempt.settings.max_malformed:
            return Ending.MALFORMED
        if not replies:
            wanted = f"Answer with a call of a tool: {', '.join(self.tools)}."
            cut = f"{CUT_OFF} " if answer.stop is Stop.LENGTH else ""
            replies = [Message(role="user", content=cut + wanted)]
        return replies

    def say(self, replies: Sequence[Message], *, ended: bool) -> None:
        """Append messages; where the template would change what stands there, a new segment begins with them."""
        self.messages += replies
        bridge = self.chat.after_answer(replies, ended=ended)
        self.attempt.spend("tool_output", len(bridge.body))
        role = replies[0].role if self.chat.native or replies[0].role != "tool" else "user"
        if any(THINK in m.content for m in self.messages) and self.chat.rewrites(role):
            self.attempt.trace.close()
            self.begin(self.messages)
            return
        self.attempt.trace.given(bridge)

    def call(self, call: ToolCall) -> Acted:
        """Run one call, in a thread."""
        tool = self.tools.get(call.name)
        self.attempt.spend("num_calls", 1)
        try:
            if tool is None:
                said = f"there is no tool {call.name!r}" if call.name else "this is no JSON object with a name"
                raise MalformedCall(f"{said}; the tools are: {', '.join(self.tools)}")
            arguments = tool.parse(call.arguments)
        except MalformedCall as error:
            return Acted(tool=call.name, arguments=call.arguments, result=f"error: {error}", malformed=str(error))
        self.box.exit_code = 0
        self.box.command_s = max(1.0, min(self.attempt.settings.command_s, self.attempt.left_s))
        before = len(self.box.written)
        result = tool.call(arguments)
        return Acted(
            tool=call.name,
            arguments=call.arguments,
            result=result.text,
            failed=result.text.startswith("error: ") or self.box.exit_code != 0,
            changed=tuple(self.box.written[before:]),
        )

    def count(self, answer: Generation, text: str, calls: Sequence[ToolCall]) -> None:
        """What an answer is made of, and its place in the trace."""
        thought, rest = thinking_in(text), without_thinking(text)
        thinking = min(len(answer.ids), len(self.chat.encode(thought)) if thought else 0)
        after = rest.find("<tool_call>")
        in_calls = len(self.chat.encode(rest[after:])) if calls and after >= 0 else 0
        in_calls = min(len(answer.ids) - thinking, in_calls)
        self.attempt.spend("thinking", thinking)
        self.attempt.spend("calls", in_calls)
        self.attempt.spend("final", len(answer.ids) - thinking - in_calls)
        self.attempt.trace.answered(answer, calls=len(calls), thinking=thinking)

    async def look(self, answer: Generation, text: str, acted: Sequence[Acted]) -> None:
        """Let detectors look at the last answer, and write down what they say."""
        settings = self.attempt.settings
        seen = Seen(
            text=text,
            stop=answer.stop,
            acted=tuple(acted),
            before=tuple(self.acted),
            tools=tuple(self.tools),
            num_tokens=len(answer.ids),
            max_tokens=settings.answer_tokens,
            changed=await self.changed(acted),
        )
        detector, hint = detect(seen, settings.detectors)
        if hint:
            self.attempt.hinted(detector, hint, self.chat.remark(hint))

    async def changed(self, acted: Sequence[Acted]) -> bool:
        """Whether anything was changed; the sandbox is asked only where an answer calls the work done."""
        if self.box.written or not any(a.tool == "finish" for a in acted):
            return True
        return bool((await self.attempt.in_thread(self.attempt.desk.diff)).strip())

    async def sum_up(self, replies: Sequence[Message], *, ended: bool) -> Ending | None:
        """Have the model sum up; its summary begins the next segment."""
        trace = self.attempt.trace
        self.attempt.spend("tool_output", len(self.chat.after_answer(replies, ended=ended).body))
        asked = [*replies, Message(role="user", content=SUM_UP)]
        trace.given(self.chat.after_answer(asked, ended=ended))
        answer = await self.ask(self.attempt.settings.summary_tokens)
        if isinstance(answer, Ending):
            return answer
        text = self.chat.said(answer.ids)
        self.count(answer, text, ())
        self.attempt.spend("num_summaries", 1)
        trace.close(is_summary=True)
        summary = without_thinking(text).strip()
        self.begin([*self.opening, Message(role="user", content=GO_ON.replace("{summary}", summary))])
        return None
