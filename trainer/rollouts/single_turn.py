"""The lowest rungs: one answer, no tools. The whole function from the statement, or the one line of its body.

For models that are too small for tools. The answer takes the place of the stand-in in the sandbox, and what comes of
it is graded like any other change.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from enum import StrEnum

from excise.agents.messages import Message
from excise.envs.sandbox.mount_points import REPO
from excise.trainer.rollout_types import Ending, Generation, Stop
from excise.trainer.rollouts.chat import Bridge, Chat, ChatTokenizer, thinking_in, without_thinking
from excise.trainer.rollouts.detectors import CODE, Acted, Seen, detect
from excise.trainer.rollouts.rollout_maker import Attempt
from excise.trainer.rollouts.stub_context import BadCode, NoStandIn, StandIn, decoded, is_stub, missing_line, stand_in
from excise.types import Task

SYSTEM = "You are a programmer. Answer with one Python code block that holds the whole function, and nothing else."


class Rung(StrEnum):
    """What is to be written."""

    FUNCTION = "function"
    """The whole function, in a code block."""
    LINE = "line"
    """The one line that is missing, as the continuation of the file: no chat, and ``return`` is there already."""


def fitting(tasks: Mapping[str, Task], rung: Rung) -> tuple[str, ...]:
    """Ids of the tasks that a rung can be tried on."""
    fits = (task for task in tasks.values() if is_stub(task))
    return tuple(task.instance_id for task in fits if rung is Rung.FUNCTION or missing_line(task))


class SingleTurn:
    """One answer without tools; implements ``Work`` of ``rollout_maker``. ``lines`` of the file are shown."""

    def __init__(self, tokenizer: ChatTokenizer, rung: Rung = Rung.FUNCTION, *, lines: int = 80) -> None:
        self.chat, self.rung, self.lines = Chat(tokenizer), rung, lines
        self.stop_ids = self.chat.stop_ids
        if rung is Rung.LINE:
            self.stop_ids = (*self.chat.stop_ids, *_with_newline(tokenizer, range(_size(tokenizer))))

    async def __call__(self, attempt: Attempt) -> Ending:
        """Ask once, put the answer in the stand-in's place. Raises :class:`NoStandIn` for a task that has none."""
        task, settings = attempt.desk.task, attempt.settings
        path = posixpath.join(REPO, task.removed[0].partition("::")[0])
        source, encoding = decoded(await attempt.in_thread(attempt.desk.session.get, path))
        place = self.place(task, source)
        prompt = self.prompt(task, place)
        attempt.trace.given(prompt)
        attempt.spend("prompt", len(attempt.trace.ids))
        room = attempt.room(settings.answer_tokens)
        if room <= 0:
            return Ending.TOKENS
        answer = await attempt.sample(room, self.stop_ids)
        if answer is None:
            return Ending.TIME
        if not answer.ids:
            return Ending.TOKENS
        text = self.chat.said(answer.ids)
        thought = thinking_in(text)
        thinking = min(len(answer.ids), len(self.chat.encode(thought)) if thought else 0)
        attempt.spend("thinking", thinking)
        attempt.spend("final", len(answer.ids) - thinking)
        attempt.trace.answered(answer, thinking=thinking)
        wrong = ""
        try:
            whole = self.filled(task, place, without_thinking(text))
            await attempt.in_thread(attempt.desk.session.put, path, whole.encode(encoding))
        except BadCode as error:
            wrong = str(error)
        except UnicodeEncodeError as error:
            wrong = f"the file cannot hold this: {error}"
        self.look(attempt, answer, text, wrong)
        return Ending.TOKENS if answer.stop is Stop.LENGTH and wrong else Ending.FINISHED

    def place(self, task: Task, source: str) -> StandIn:
        """What is to be written anew in a file's text. Raises :class:`NoStandIn`."""
        place = stand_in(task, source)
        if self.rung is Rung.FUNCTION:
            return place
        missing = missing_line(task)
        if missing is None:
            raise NoStandIn(f"{task.instance_id} is not a task of one line.")
        return place.at(missing)

    def prompt(self, task: Task, place: StandIn) -> Bridge:
        """What the model reads."""
        if self.rung is Rung.LINE:
            return Bridge((), tuple(self.chat.encode(place.before(self.lines) + place.indent + _given(task))))
        told = (
            f"{task.problem_statement}\n\nThis is in `{place.path}`:\n\n```python\n{place.around(self.lines)}```\n\n"
            f"Write `{place.qualname}`."
        )
        return self.chat.opening([Message(role="system", content=SYSTEM), Message(role="user", content=told)])

    def filled(self, task: Task, place: StandIn, answer: str) -> str:
        """The file with the answer in it. Raises :class:`BadCode`."""
        if self.rung is Rung.FUNCTION:
            return place.with_answer(answer)
        line = (_given(task) + answer).split("\n", 1)[0].strip()
        return place.with_body(f"{line}\n")

    def look(self, attempt: Attempt, answer: Generation, text: str, wrong: str) -> None:
        """Say what is wrong with an answer, for a teacher."""
        seen = Seen(
            text=text,
            stop=answer.stop,
            acted=(Acted(tool=CODE, arguments="", result=wrong, malformed=wrong, failed=bool(wrong)),),
            before=(),
            tools=(CODE,),
            num_tokens=len(answer.ids),
            max_tokens=attempt.settings.answer_tokens,
            changed=not wrong,
        )
        detector, hint = detect(seen, attempt.settings.detectors)
        if hint:
            attempt.hinted(detector, hint, self._aside(hint))

    def _aside(self, text: str) -> tuple[int, ...]:
        """A hint before what asks for the answer: a message, or where there is no chat a comment above the file."""
        return tuple(self.chat.encode(comment(text))) if self.rung is Rung.LINE else self.chat.remark(text)


def comment(text: str) -> str:
    """A text as comments of a Python file."""
    return "".join(f"# {line}\n" for line in text.splitlines())


def _given(task: Task) -> str:
    """The beginning of the missing line that is given: the word, never what comes of it."""
    missing = missing_line(task)
    return "return " if missing is not None and missing.text.startswith("return ") else ""


def _size(tokenizer: ChatTokenizer) -> int:
    size: int = len(tokenizer)  # type: ignore[arg-type]
    return size


def _with_newline(tokenizer: ChatTokenizer, ids: Iterable[int]) -> list[int]:
    """Tokens that end a line."""
    return [token for token in ids if "\n" in tokenizer.decode([token])]
