"""An environment for OpenEnv; this file is copied into every export for it as ``server/app.py``.

It runs in OpenEnv's process, with its package and the standard library. An episode is one task: the actions are
commands for bash in the project's folder, the last one submits the changes, and its observation has the reward. In the
exported folder:

    python server/app.py --port 8000
"""

from __future__ import annotations

import argparse
import sys
import uuid
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import excise_tasks  # type: ignore[import-not-found] # noqa: E402
from openenv.core.env_server.http_server import create_app  # noqa: E402
from openenv.core.env_server.interfaces import Environment  # noqa: E402
from openenv.core.env_server.types import (  # noqa: E402
    Action,
    EnvironmentMetadata,
    Observation,
    State,
)

MAX_SESSIONS = 64
"""Episodes at a time."""


class ExciseAction(Action):  # type: ignore[misc]
    """One command, or the end of the episode."""

    command: str = ""
    """Command for bash in the project's folder."""
    submit: bool = False
    """Whether to grade the changes and end the episode; there is no command then."""


class ExciseObservation(Observation):  # type: ignore[misc]
    """What a command printed; after a reset, the task."""

    output: str = ""
    """Text."""
    returncode: int = 0
    """Exit code of the command; -1 after its time limit."""
    instance_id: str = ""
    """Id of the task."""


class ExciseState(State):  # type: ignore[misc]
    """The state of an episode."""

    instance_id: str = ""
    """Id of the task; empty before the first reset."""


class ExciseEnvironment(Environment):  # type: ignore[misc]
    """Tasks of this folder; each session has a sandbox of its own."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        super().__init__()
        self._tasks = excise_tasks.load_tasks()
        self._session: Any = None
        self._state = ExciseState(episode_id=str(uuid.uuid4()), step_count=0)

    def reset(
        self, seed: int | None = None, episode_id: str | None = None, instance_id: str = "", **_: Any
    ) -> ExciseObservation:
        """Open the sandbox of a task: of ``instance_id``, else of the one that ``seed`` names by its place."""
        self.close()
        ids = sorted(self._tasks)
        chosen = instance_id or ids[(seed or 0) % len(ids)]
        if chosen not in self._tasks:
            raise ValueError(f"There is no task {chosen!r}; the first is {ids[0]}.")
        self._session = excise_tasks.TaskSession(self._tasks[chosen])
        self._state = ExciseState(episode_id=episode_id or str(uuid.uuid4()), step_count=0, instance_id=chosen)
        return ExciseObservation(output=self._tasks[chosen]["prompt"], instance_id=chosen, reward=None, done=False)

    def step(self, action: ExciseAction, **_: Any) -> ExciseObservation:
        """Run a command, or grade the changes and end the episode."""
        if self._session is None:
            raise ValueError("Call reset first.")
        self._state.step_count += 1
        instance_id = self._state.instance_id
        if action.submit:
            reward = self._session.reward()
            self.close()
            return ExciseObservation(output="", instance_id=instance_id, reward=reward, done=True)
        return ExciseObservation(**self._session.run(action.command), instance_id=instance_id, reward=None, done=False)

    @property
    def state(self) -> ExciseState:
        """The state of the episode."""
        return self._state

    def get_metadata(self) -> EnvironmentMetadata:
        """Name and description."""
        text = f"{len(self._tasks)} coding tasks from real projects, made by excise."
        return EnvironmentMetadata(name="excise", description=text, version="1.0")

    def close(self) -> None:
        """End the sandbox."""
        if self._session is not None:
            self._session.close()
            self._session = None


app = create_app(
    ExciseEnvironment, ExciseAction, ExciseObservation, env_name="excise", max_concurrent_envs=MAX_SESSIONS
)


def main() -> None:
    """Serve until interrupted."""
    import uvicorn

    parser = argparse.ArgumentParser(description="OpenEnv server with the tasks of this folder.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    options = parser.parse_args()
    uvicorn.run(app, host=options.host, port=options.port, log_level="warning")


if __name__ == "__main__":
    main()
