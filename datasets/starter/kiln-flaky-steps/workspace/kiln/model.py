"""Data types."""

from dataclasses import dataclass


class SpecError(Exception):
    """A plan's text is wrong; `line` counts from 1."""

    def __init__(self, line, message):
        super().__init__(f"line {line}: {message}")
        self.line = line


class StepError(Exception):
    """Raised by an action to say that its step failed."""

    def __init__(self, kind, message):
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True)
class Step:
    name: str
    action: str
    needs: tuple = ()


@dataclass(frozen=True)
class Plan:
    steps: tuple  # in the order of declaration

    def __getitem__(self, name):
        for step in self.steps:
            if step.name == name:
                return step
        raise KeyError(name)


@dataclass(frozen=True)
class StepResult:
    step: Step
    status: str  # "ok", "failed" or "skipped"
    error: StepError | None = None


@dataclass(frozen=True)
class Result:
    steps: tuple  # of StepResult, in the order of declaration

    @property
    def ok(self):
        return all(item.status == "ok" for item in self.steps)
