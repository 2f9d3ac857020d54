"""Attempts in one answer without tools: the model writes a whole function, or the one line that is missing.

For models that are too small for tools. The answer replaces the stub in the sandbox, and the resulting diff is graded
like any other.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from enum import StrEnum

from excise.agents.messages import Message
from excise.envs.sandbox.mount_points import REPO
from excise.trainer.rollout_types import Ending, Generation, Stop
from excise.trainer.rollouts.chat import Chat, ChatTokenizer, PromptTokens, thinking_in, without_thinking
from excise.trainer.rollouts.detectors import CODE, ToolCallResult, TurnObservation, detect
from excise.trainer.rollouts.rollout_maker import Attempt
from excise.trainer.rollouts.stub_context import (
    NoStub,
    StubContext,
    UnusableCode,
    decode_file,
    find_stub,
    is_stub,
    missing_line,
)
from excise.types import Task, path_of

SYSTEM = "You are a programmer. Answer with one Python code block that holds the whole function, and nothing else."


class AnswerKind(StrEnum):
    """What the model has to write."""

    FUNCTION = "function"
    """The whole function, in a code block."""
    LINE = "line"
    """The one missing line, as a continuation of the file: no chat template, and a leading ``return`` is given."""


def tasks_for(tasks: Mapping[str, Task], kind: AnswerKind) -> tuple[str, ...]:
    """Ids of the tasks that can be attempted with this kind of answer."""
    stubs = (task for task in tasks.values() if is_stub(task))
    return tuple(task.instance_id for task in stubs if kind is AnswerKind.FUNCTION or missing_line(task))


class SingleTurn:
    """Attempt mode with one answer and no tools. The prompt shows ``lines`` lines of the file."""

    def __init__(self, tokenizer: ChatTokenizer, kind: AnswerKind = AnswerKind.FUNCTION, *, lines: int = 80) -> None:
        self.chat, self.kind, self.lines = Chat(tokenizer), kind, lines
        self.stop_ids = self.chat.stop_ids
        if kind is AnswerKind.LINE:
            self.stop_ids = (*self.chat.stop_ids, *_tokens_with_newline(tokenizer, range(_vocabulary_size(tokenizer))))

    async def __call__(self, attempt: Attempt) -> Ending:
        """Sample one answer and put it in place of the stub. Raises :class:`NoStub` for a task without a stub."""
        task, settings = attempt.sandbox.task, attempt.settings
        path = posixpath.join(REPO, path_of(task.removed[0]))
        source, encoding = decode_file(await attempt.run_blocking(attempt.sandbox.session.get, path))
        stub = self.stub(task, source)
        attempt.recorder.add_context(self.prompt(task, stub))
        attempt.record_usage("prompt", len(attempt.recorder.ids))
        budget = attempt.token_budget(settings.answer_tokens)
        if budget <= 0:
            return Ending.TOKENS
        answer = await attempt.sample(budget, self.stop_ids)
        if answer is None:
            return Ending.TIME
        if not answer.ids:
            return Ending.TOKENS
        text = self.chat.answer_text(answer.ids)
        thought = thinking_in(text)
        thinking = min(len(answer.ids), len(self.chat.encode(thought)) if thought else 0)
        attempt.record_usage("thinking", thinking)
        attempt.record_usage("final", len(answer.ids) - thinking)
        attempt.recorder.add_answer(answer, thinking=thinking)
        problem = ""
        try:
            filled = self.fill_in(task, stub, without_thinking(text))
            await attempt.run_blocking(attempt.sandbox.session.put, path, filled.encode(encoding))
        except UnusableCode as error:
            problem = str(error)
        except UnicodeEncodeError as error:
            problem = f"the file cannot hold this: {error}"
        self.run_detectors(attempt, answer, text, problem)
        return Ending.TOKENS if answer.stop is Stop.LENGTH and problem else Ending.FINISHED

    def stub(self, task: Task, source: str) -> StubContext:
        """The part of a file that the answer replaces. Raises :class:`NoStub`."""
        stub = find_stub(task, source)
        if self.kind is AnswerKind.FUNCTION:
            return stub
        missing = missing_line(task)
        if missing is None:
            raise NoStub(f"{task.instance_id} is not a task of one line.")
        return stub.narrowed_to(missing)

    def prompt(self, task: Task, stub: StubContext) -> PromptTokens:
        """The tokens of the prompt."""
        if self.kind is AnswerKind.LINE:
            text = stub.before(self.lines) + stub.indent + _given_prefix(task)
            return PromptTokens((), tuple(self.chat.encode(text)))
        question = (
            f"{task.problem_statement}\n\nThis is in `{stub.path}`:\n\n```python\n{stub.around(self.lines)}```\n\n"
            f"Write `{stub.qualname}`."
        )
        return self.chat.opening([Message(role="system", content=SYSTEM), Message(role="user", content=question)])

    def fill_in(self, task: Task, stub: StubContext, answer: str) -> str:
        """The file with the answer in place of the stub. Raises :class:`UnusableCode`."""
        if self.kind is AnswerKind.FUNCTION:
            return stub.with_answer(answer)
        line = (_given_prefix(task) + answer).split("\n", 1)[0].strip()
        return stub.with_body(f"{line}\n")

    def run_detectors(self, attempt: Attempt, answer: Generation, text: str, problem: str) -> None:
        """Run the detectors on the answer and attach their hint to it; ``problem``: why its code is unusable."""
        call = ToolCallResult(tool=CODE, arguments="", result=problem, malformed=problem, failed=bool(problem))
        observation = TurnObservation(
            text=text,
            stop=answer.stop,
            calls=(call,),
            earlier_calls=(),
            tools=(CODE,),
            num_tokens=len(answer.ids),
            max_tokens=attempt.settings.answer_tokens,
            project_changed=not problem,
        )
        detector, hint = detect(observation, attempt.settings.detectors)
        if hint:
            attempt.add_hint(detector, hint, self._hint_tokens(hint))

    def _hint_tokens(self, text: str) -> tuple[int, ...]:
        """A hint as a user message; without a chat template, as a comment above the code."""
        if self.kind is AnswerKind.LINE:
            return tuple(self.chat.encode(as_comment(text)))
        return self.chat.user_message(text)


def as_comment(text: str) -> str:
    """A text as Python comment lines."""
    return "".join(f"# {line}\n" for line in text.splitlines())


def _given_prefix(task: Task) -> str:
    """The part of the missing line that the prompt contains: ``return``, if the line starts with it."""
    missing = missing_line(task)
    return "return " if missing is not None and missing.text.startswith("return ") else ""


def _vocabulary_size(tokenizer: ChatTokenizer) -> int:
    size: int = len(tokenizer)  # type: ignore[arg-type]
    return size


def _tokens_with_newline(tokenizer: ChatTokenizer, ids: Iterable[int]) -> list[int]:
    """The token ids whose text contains a line end."""
    return [token for token in ids if "\n" in tokenizer.decode([token])]
