"""What a recording holds: one JSON object a line, the models of which are here (docs/recordings.md).

    episode   what is played, on what, how: written before the box is made
    start     the box is there; what the policy is told
    turn      a message, its calls, what they gave, what changed in the workspace: one line a turn
    workspace what the policy left, as far as it is judged
    end       how it ended: the verdict, the counts

A kill at any moment leaves whole lines, but for the last one at most. Never in it: hidden tests, references, the values
of a box's environment; messages of tests only where the policy may see them (`feedback="messages"`).
"""

from __future__ import annotations

import base64
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from codeenv.grading.verdict import Outcome, TestResult, Verdict

FORMAT = 1
"""The version of this schema. A reader takes every one up to its own."""


class Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Data(Part):
    """Bytes: as text where they are UTF-8, else in base64."""

    text: str | None = None
    base64: str | None = None

    @classmethod
    def of(cls, data: bytes) -> Data:
        try:
            return cls(text=data.decode())
        except UnicodeDecodeError:
            return cls(base64=base64.b64encode(data).decode())

    @property
    def bytes(self) -> bytes:
        """:raises ValueError: the base64 is none."""
        return (self.text or "").encode() if self.base64 is None else base64.b64decode(self.base64, validate=True)


class TaskRef(Part):
    """Which task: where it came from is enough to load it again."""

    id: str
    digest: str
    """Of all that the task is (`Task.digest`)."""
    start: str = ""
    """Of the files that the policy starts with (`codeenv.grading.workspace.start_digest`)."""
    source: Any = None
    """What `codeenv.sources.open_tasks` takes: the name of a dataset, or an object of a choice's fields. None: not
    known."""


class Fork(Part):
    """The episode that this one goes on from, and after which of its turns."""

    id: str
    turn: int


class Opening(Part):
    kind: Literal["episode"] = "episode"
    format: int = FORMAT
    id: str
    started: str
    """UTC, ISO 8601."""
    task: TaskRef
    sandbox: str
    """The backend's name."""
    settings: dict[str, Any]
    """The fields of `EpisodeSettings`."""
    spec: dict[str, Any]
    """The fields of `SandboxSpec`, of `env` the names alone."""
    versions: dict[str, str]
    policy: str = ""
    """The model or scripted policy, where it is known."""
    labels: dict[str, Any] = Field(default_factory=dict)
    """What the caller calls this episode: an example's number, a rollout's id."""
    fork: Fork | None = None


class Start(Part):
    kind: Literal["start"] = "start"
    seconds: float
    """What it took to make the box, files included."""
    workdir: str
    prompt: list[dict[str, Any]]
    """The messages before the first turn: `role`, `content`."""


class Said(Part):
    """A message of the policy, as far as the caller knows it; the calls are beside it."""

    text: str = ""
    reasoning: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class Judged(Part):
    """A verdict; `message` of a test is empty where the policy may not see it."""

    outcome: Outcome
    reward: float
    exit_code: int | None
    tests: list[TestResult]
    seconds: float
    reason: str = ""
    attempts: int = 1

    @classmethod
    def of(cls, verdict: Verdict, feedback: str) -> Judged:
        """Messages of tests can quote what a hidden test expects: they are kept only where the policy may see them
        (`feedback="messages"`)."""
        shown = feedback == "messages"
        tests = [
            TestResult(id=t.id, passed=t.passed, message=t.message if shown else "", seconds=round(t.seconds, 4))
            for t in verdict.tests
        ]
        return cls(
            outcome=verdict.outcome,
            reward=verdict.reward,
            exit_code=verdict.exit_code,
            tests=tests,
            seconds=round(verdict.seconds, 4),
            reason=verdict.reason,
            attempts=verdict.attempts,
        )

    @property
    def passed(self) -> int:
        return sum(test.passed for test in self.tests)

    def _repr_html_(self) -> str:
        from codeenv.html import styled

        return styled("verdict", verdict=self)


class Raw(Part):
    """What a result's text was made of: a template and its values, for `output` the bytes as the box kept them; or a
    text, which is `where`."""

    template: str = ""
    values: dict[str, Any] = Field(default_factory=dict)
    output: Data | None = None
    output_bytes: int = 0
    """How many there were; with more than `output` holds, that is the first and the last half."""
    saved_to: str = ""
    text: str = ""
    where: str = ""


class Result(Part):
    """A call, and what came of it. `text` is what the policy saw."""

    id: str = ""
    name: str
    arguments: str | dict[str, Any] | None = None
    fault: str = ""
    tool: str
    text: str
    failed: bool = False
    valid: bool = True
    done: bool = False
    exit_code: int | None = None
    seconds: float = 0.0
    tokens: int = 0
    raw: Raw | None = None
    """None: `text` is all."""
    verdict: Judged | None = None
    """Of `run_tests`."""


class Change(Part):
    """One file or link of the workspace that a turn changed. `size` in bytes and `digest` (SHA-256) are of what is
    there now, `diff` is unified; it is empty for what is binary, too large, or changed its mode alone."""

    path: str
    change: Literal["added", "changed", "removed"]
    mode: int | None = None
    """Permission bits, where they are new."""
    size: int = 0
    digest: str = ""
    diff: str = ""
    binary: bool = False
    target: str | None = None
    """Of a link."""


class Turn(Part):
    kind: Literal["turn"] = "turn"
    turn: int
    """From 1."""
    at: float
    """Seconds from the start of the recording to the message."""
    waited: float
    """Seconds from the last answer to this message: the policy's time, and the framework's."""
    seconds: float
    """Seconds for all of the calls."""
    said: Said
    results: list[Result]
    diff: list[Change]
    diff_note: str = ""
    """Why the diff is missing or not whole."""
    cwd: str = ""
    """The shell's directory afterwards."""
    over: str = ""
    """Why the episode takes no more turns (`codeenv.tally.Over`)."""
    error: str = ""
    """What broke the turn off; `results` are those of the calls before."""

    def _repr_html_(self) -> str:
        from codeenv.html import styled

        return styled("turn", turn=self)


class FileLeft(Part):
    """One that is not as the task had it."""

    path: str
    mode: int
    data: Data
    """Its content; of a link, its target."""
    link: bool = False


class Left(Part):
    """What the policy left, as a difference to the task's files: enough to judge it again."""

    kind: Literal["workspace"] = "workspace"
    files: list[FileLeft]
    removed: list[str]
    missing: str = ""
    """Why this is not all of it, or nothing; then it cannot be judged again."""


class Fault(Part):
    """Why there is no verdict."""

    type: str
    stage: str = ""
    message: str
    seconds: float | None = None


class End(Part):
    kind: Literal["end"] = "end"
    seconds: float
    """The whole episode's, grading included."""
    outcome: Outcome | None
    """None: it was closed before it was judged."""
    over: str
    verdict: Judged | None = None
    error: Fault | None = None
    tally: dict[str, Any]
    """The fields of `codeenv.tally.Tally`."""
    model_seconds: float | None = None
    """Sums over the turns, so that a list of episodes need not read them; None: they were not made."""
    prompt_tokens: int = 0
    completion_tokens: int = 0


Line = Annotated[Opening | Start | Turn | Left | End, Field(discriminator="kind")]
LINE: TypeAdapter[Line] = TypeAdapter(Line)


class Summary(Part):
    """One episode as a line of a table."""

    file: str
    """Its name in the folder."""
    id: str
    task: str
    policy: str = ""
    sandbox: str = ""
    started: str = ""
    outcome: Outcome | None = None
    """None: it has none, or it still runs."""
    over: str = ""
    reward: float | None = None
    """None where there is none (outcomes `infra` and `model`, and those that have not ended)."""
    tests_passed: int | None = None
    tests_total: int | None = None
    turns: int = 0
    seconds: float = 0.0
    model_seconds: float = 0.0
    sandbox_seconds: float = 0.0
    """Making the box and running commands, without the tests that the policy ran."""
    grading_seconds: float = 0.0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    error: str = ""
    ended: bool = False
