"""What the arguments that people write come to: which tasks are played, and how. Their faults are raised here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field

from codeenv.episode import Episode, EpisodeSettings, counter
from codeenv.prompts import Prompts
from codeenv.record import Recordings
from codeenv.sandbox import get_provider, public_settings
from codeenv.sandbox.api import SandboxProvider, SandboxSpec
from codeenv.settings import protocol_for
from codeenv.sources import Tasks, train_and_eval
from codeenv.sources.choice import Choice
from codeenv.task import Limits, Task


def _read(value: Any) -> Any:
    """A command line has text only: what looks like a JSON list or object is one."""
    return json.loads(value) if isinstance(value, str) and value[:1] in ("[", "{") else value


Names = Annotated[str | list[str], BeforeValidator(_read)]


class Arguments(BaseModel):
    """Those of `codeenv.load_environment`, which says more of each, but for `eval_dataset`, `eval_split` and
    `system_prompt`."""

    dataset: Annotated[str | dict[str, Any] | list[Any], BeforeValidator(_read)] = "starter"
    """A shipped set, a directory, a file, a public set; or an object, or several."""
    split: str = ""
    """`train`, `eval`, or a name of the set's own. By default `train` where the set has both."""
    filter: dict[str, Any] | None = None
    """Metadata that tasks must have."""
    limit: int | None = None
    """Tasks at most."""
    seed: int | None = None
    """Shuffles first, so that `limit` takes a sample."""
    tasks: Names | None = None
    """Only these task ids, in this order; or a report of `codeenv validate`."""
    decontaminate: Names = Field(default_factory=list)
    """Datasets none of whose prompts may be among the tasks."""
    columns: dict[str, str] | None = None
    """For rows of any schema: what of a task is in which column."""
    kind: str = ""
    """For rows of any schema: what their tests are."""
    grader: dict[str, Any] | None = None
    """For rows of any schema: settings of the grader."""
    strict: bool | None = None
    """Whether one bad row is an error."""
    field_limit_mb: float | None = None
    """MiB of one column; a row with a larger one is bad."""
    sandbox: str = "auto"
    """"auto", or a backend by name."""
    sandbox_settings: dict[str, Any] | None = None
    """The backend's own settings, never its token."""
    max_turns: int = 30
    """Messages of the policy; 0 for no limit."""
    protocol: str | None = None
    """"tools", "text" or "answer"."""
    tools: list[str] | None = None
    """Names of the tools to offer; all by default."""
    prompts: str | Path | None = None
    """A directory of templates that replace ours by name."""
    command_timeout: float = 60.0
    """Seconds for one command."""
    ttl_seconds: float = 1800.0
    """Life of a box; the episode ends a reserve for grading earlier."""
    observation_tokens: int = 2000
    """Budget of one tool's output."""
    feedback: str = "counts"
    """What `run_tests` shows: "pass_fail", "counts" or "messages"."""
    max_test_runs: int = 10
    """Times that `run_tests` runs the tests; 0 for no limit."""
    grading_retries: int = 0
    """Times that a failed grade is made again, where the task does not say."""
    limits: dict[str, Any] | None = None
    """Ceilings of every box where the task sets none: memory_mb, disk_mb, processes, cpus."""
    python: str | None = None
    """The boxes' Python."""
    image: str | None = None
    """Their image, for sandboxes that have images."""
    packages: list[str] = Field(default_factory=list)
    """Python packages in every box."""
    partial_credit: float = 0.0
    """This times the fraction of tests passed is added to the reward."""
    record: str | Path | None = None
    """A folder in which each episode leaves a recording."""


CHOICE = tuple(name for name in Choice.model_fields if name in Arguments.model_fields and name != "dataset")
"""Those that say which tasks of a dataset."""


@dataclass(frozen=True)
class Course:
    tasks: Tasks
    eval_tasks: Tasks | None
    """Where evaluations are over others."""
    provider: SandboxProvider
    settings: EpisodeSettings
    spec: SandboxSpec
    prompts: Prompts
    record: Recordings | None

    async def open(self, task: Task, **named: Any) -> Episode:
        """An episode of it, which the caller must close. `named` and what is raised: as `Episode.open`'s."""
        how: dict[str, Any] = {"spec": self.spec, "prompts": self.prompts, "record": self.record, **named}
        return await Episode.open(task, self.provider, self.settings, **how)


def course(given: Arguments, eval_dataset: Any = None, eval_split: str = "") -> Course:
    """Everything that they name. Raises what `codeenv.load_environment` raises."""
    backend = public_settings(given.sandbox_settings)
    own = {name: getattr(given, name) for name in CHOICE}
    chosen, held_out = train_and_eval(given.dataset, own, eval_dataset, eval_split)
    protocol = protocol_for(given.protocol, given.max_turns, chain(chosen, held_out or ()))
    own_settings = {name: getattr(given, name) for name in EpisodeSettings.model_fields}
    settings = EpisodeSettings.model_validate({**own_settings, "protocol": protocol})
    if given.partial_credit < 0:
        raise ValueError(f"partial_credit must be 0 or more, not {given.partial_credit}")
    ceilings = Limits.model_validate(dict(given.limits or {})).model_dump(
        exclude_none=True, exclude={"command_timeout"}
    )
    spec = SandboxSpec(python=given.python, image=given.image, packages=tuple(given.packages), **ceilings)
    templates = Prompts(given.prompts)
    _ = counter().exact  # settled now: loading a table would hold up an episode
    provider = get_provider(given.sandbox, **backend)
    source = _source(given.dataset, own, eval_dataset, eval_split)
    recordings = Recordings(given.record, source=source) if given.record else None
    return Course(chosen, held_out, provider, settings, spec, templates, recordings)


def _source(dataset: Any, own: Mapping[str, Any], eval_dataset: Any, eval_split: str) -> Any:
    """Where the tasks come from, for recordings: what is enough to open them again, a mere name where it is."""
    given = {**own, "eval_dataset": eval_dataset, "eval_split": eval_split}
    given = {key: _plain(value) for key, value in given.items() if value not in (None, "", ())}
    return {"dataset": _plain(dataset), **given} if given else _plain(dataset)


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value
