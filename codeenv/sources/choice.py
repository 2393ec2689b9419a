"""What a user asks for of one dataset: which split, which tasks, how many."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from pydantic import Field, ValidationError, field_validator

from codeenv.graders import Strict
from codeenv.sources.directory import describe
from codeenv.sources.filters import Filter


class Choice(Strict):
    """Tasks of one dataset."""

    dataset: str
    """A shipped set, a directory, a file, a public set (`NAME`, `NAME@REVISION`, `NAME:FILE`), or
    `hf:REPO[:CONFIG][@REVISION]`."""
    split: str = ""
    """Ours (`train`, `eval`) or one of the set's own; empty: `eval` where there is one, else `train`."""
    filter: Mapping[str, Any] = Field(default_factory=dict)
    """Metadata that tasks must have; see `Filter`."""
    limit: int | None = Field(default=None, ge=1)
    """Tasks at most."""
    seed: int | None = None
    """Shuffles before anything is chosen, so that `limit` takes a sample; the same seed, the same tasks. None: the
    set's order."""
    tasks: str | tuple[str, ...] | None = None
    """Ids, in the order wanted, or a report of `codeenv validate`, of which the sound ones are taken."""
    decontaminate: tuple[str, ...] = ()
    """Datasets none of whose prompts may be among the tasks."""
    columns: Mapping[str, str] = Field(default_factory=dict)
    """For rows of any schema: what of a task is in which column; see `codeenv.sources.mapped`."""
    kind: str = ""
    """For rows of any schema: what their tests are."""
    grader: Mapping[str, Any] = Field(default_factory=dict)
    """For rows of any schema: settings of the grader."""
    weight: float | None = Field(default=None, gt=0)
    """Among several datasets: this one's part of the tasks."""
    strict: bool | None = None
    """Whether one bad row is an error; None: where the tasks are a user's own (a directory, JSONL of tasks), it is."""
    field_limit_mb: float | None = Field(default=None, gt=0)
    """MiB of one column: a row with a larger one is bad. None: what the set says."""

    @field_validator("dataset", mode="before")
    @classmethod
    def _path(cls, value: object) -> object:
        return str(value) if isinstance(value, Path) else value

    @field_validator("decontaminate", mode="before")
    @classmethod
    def _names(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value

    @field_validator("filter")
    @classmethod
    def _filter(cls, value: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            Filter(value)
        except ValueError as error:
            raise ValueError(str(error).removeprefix("filter: ")) from error
        return value

    @property
    def name(self) -> str:
        """What tasks of several datasets are told apart by: the set's name, or a path's last part."""
        path = Path(self.dataset)
        last = path.name if "/" in self.dataset and not self.dataset.startswith("hf:") else self.dataset
        return last.removesuffix(".gz").removesuffix(".jsonl")


def choose(dataset: object, **fields: Any) -> Choice:
    """:param dataset: a name or path, or an object of a choice's own fields, which come before `fields`.

    :raises ValueError: a field is unknown or not valid; the message has a line for each and says what is valid.
    """
    own = dict(cast(Mapping[str, Any], dataset)) if isinstance(dataset, Mapping) else {"dataset": dataset}
    try:
        return Choice.model_validate({**fields, **own})
    except ValidationError as error:
        unknown = [str(fault["loc"][0]) for fault in error.errors() if fault["type"] == "extra_forbidden"]
        if unknown:
            valid = ", ".join(Choice.model_fields)
            raise ValueError(f"dataset: unknown: {', '.join(unknown)}; valid: {valid}") from error
        raise ValueError("\n".join(describe(error))) from error
