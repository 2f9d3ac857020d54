"""The error classes, one for each part of the program that may fail; every message says what the user can do.

Errors are caught where a stage ends (:mod:`excise.pipeline.stages.error_boundary`) and become rows with a
machine-readable ``reason``.
"""

from __future__ import annotations


class ExciseError(Exception):
    """Base of all errors that excise raises on purpose.

    ``reason`` is a short machine-readable code (``snake_case``); the message is a sentence for users.
    """

    reason = "error"

    def __init__(self, message: str, *, reason: str | None = None) -> None:
        super().__init__(message)
        if reason is not None:
            self.reason = reason

    def __reduce__(self) -> tuple[object, ...]:
        """Keep ``reason`` when the error crosses a process boundary."""
        return (_rebuild, (type(self), str(self), self.reason))


def _rebuild(cls: type[ExciseError], message: str, reason: str) -> ExciseError:
    return cls(message, reason=reason)


class ConfigError(ExciseError):
    """The configuration or a sources file cannot be used (exit code 2)."""

    reason = "bad_config"


class SourceError(ExciseError):
    """A source cannot be fetched or unpacked."""

    reason = "source_unavailable"


class EnvironmentFailure(ExciseError):
    """No working environment could be made; ``reason`` is the class of the failure.

    Classes: ``no_tests, python_unavailable, resolve_conflict, build_native, missing_system_lib,
    import_error, collect_error, service_required, network_required, timeout, oom, low_pass, flaky,
    vacuous_goals, source_modified, unreproducible, budget, infra``. Only a retry after ``infra`` may succeed.
    """

    reason = "infra"


class SandboxError(ExciseError):
    """The sandbox itself failed (not the program inside it): an infrastructure failure."""

    reason = "infra_error"


class AgentError(ExciseError):
    """A conversation with a model cannot continue.

    Reasons: ``model_unavailable`` (no answer, or none that can be parsed), ``budget`` (used up), ``bad_transcript``,
    ``replay_differs``.
    """

    reason = "model_unavailable"


class DeletionRefused(ExciseError):
    """A feature cannot be deleted cleanly; the candidate becomes a rejection row."""

    reason = "deletion_refused"


class PatchError(ExciseError):
    """A patch does not apply exactly."""

    reason = "patch_does_not_apply"


class StoreError(ExciseError):
    """A task set cannot be read or written (missing, newer schema, locked, disk full)."""

    reason = "store_error"


class StageTimeout(ExciseError):
    """A stage ran past its deadline."""

    reason = "stage_timeout"


class EngineError(ExciseError):
    """The engine that samples from the policy has ended, or refuses a request."""

    reason = "engine_error"


class TrainingError(ExciseError):
    """A training run cannot begin or continue."""

    reason = "training_error"
