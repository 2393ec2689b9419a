"""Where tasks come from. `load_tasks` and `open_tasks` are the doors; each form of source is one small module."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, cast

from codeenv.resources import resource
from codeenv.sources.allowed import named_only, read_report, sound_only
from codeenv.sources.choice import Choice, choose
from codeenv.sources.contamination import Prompts
from codeenv.sources.directory import load_directory
from codeenv.sources.expected import record
from codeenv.sources.filters import Filter
from codeenv.sources.jsonl import task_of
from codeenv.sources.pool import BadPlace, JsonlRows, ListPool, Pool, RowPool
from codeenv.sources.public import catalogue, file_pool, hub_pool, public_pool, public_set, splits_of
from codeenv.sources.sets import public_sets
from codeenv.sources.several import Part, entries_of, interleaved, one_after_another, unique
from codeenv.sources.tasks import Account, BadRow, Entry, Found, Tasks, TasksById, found_at
from codeenv.task import Task, TaskError

__all__ = [
    "BadRow",
    "Entry",
    "Tasks",
    "TasksById",
    "catalogue",
    "choose",
    "load_tasks",
    "locate",
    "open_tasks",
    "record",
    "shipped",
    "splits_of",
    "together",
    "train_and_eval",
]

LINES = (".jsonl", ".ndjson")


def shipped() -> list[str]:
    """Names of the task sets that come with codeenv."""
    return sorted(p.name for p in resource("datasets").iterdir() if p.is_dir() and any(p.glob("*/task.toml")))


def locate(dataset: str | Path) -> Path:
    """Where a dataset is: a shipped set by name, or a path. What begins with `.`, `/` or `~` is always a path."""
    named = resource("datasets") / str(dataset)
    path = Path(dataset).expanduser()
    if not _is_path(str(dataset)) and ".." not in path.parts and named.is_dir():
        return named
    return path


def _is_path(dataset: str) -> bool:
    return dataset.startswith((".", "/", "~"))


def load_tasks(dataset: Any, *, recorded: bool = True, **choice: Any) -> list[Task]:
    """The tasks of a dataset, all in memory; see `open_tasks`."""
    return list(open_tasks(dataset, recorded=recorded, **choice))


def open_tasks(dataset: Any, *, recorded: bool = True, **choice: Any) -> Tasks:
    """The tasks of a dataset, made as they are asked for: `starter` or another shipped set, one task of it
    (`starter/<id>`), a directory (of tasks, or one task), a JSONL file of tasks, a public set (`humaneval`,
    `NAME@REVISION`, `NAME:FILE` for rows of its schema), or, with `columns`, `hf:REPO[:CONFIG][@REVISION]` or any file
    of rows.

    :param dataset: that; or an object of a `Choice`'s fields; or several of them: a list, or names with weights.
    :param recorded: whether the ids of tests that `codeenv validate --record` wrote down count.
    :param choice: the fields of `Choice`: `split`, `filter`, `limit`, `seed`, `tasks` and so on. With several datasets
        they hold for each that does not say; `limit` is of all together.

    What is chosen is settled by the first pass over it, which raises what is wrong with rows and choice:

    :raises TaskError: tasks are malformed, all faults at once, where they are a user's own; or none is left; or two
        have one id.
    :raises FileNotFoundError: there is no such dataset, or it is not to be had; the message says what there is.
    :raises ValueError: a field of the choice is not valid; the message names it and what is valid.
    """
    several = entries_of(dataset)
    if several is None:
        return _one(choose(dataset, **choice), recorded)
    limit = choice.pop("limit", None)
    if choice.get("tasks") is not None:
        raise ValueError("tasks: with several datasets each entry has its own")
    choices = [choose(entry, **choice) for entry in several]
    weights = [each.weight for each in choices]
    if None in weights and any(weights):
        raise ValueError("weight: each of several datasets has one, or none has")
    opened = [_one(each, recorded) for each in choices]
    whole = choose("several", limit=limit)
    return together(opened, [weight or 0.0 for weight in weights] if all(weights) else None, limit=whole.limit)


def train_and_eval(
    dataset: Any, choice: Mapping[str, Any], eval_dataset: Any = None, eval_split: str = ""
) -> tuple[Tasks, Tasks | None]:
    """The tasks to train on, and those to evaluate on where they are others: of `eval_dataset`, or of `eval_split` of
    the dataset, or of its own `eval` where it has both and neither a split nor tasks are named.

    :param choice: fields of `Choice`; None is as if it were not there. :raises: as `open_tasks`.
    """
    own = {key: value for key, value in choice.items() if value is not None}
    if isinstance(dataset, Mapping) and "dataset" in dataset:
        own |= cast(Mapping[str, Any], dataset)
        dataset = own.pop("dataset")
    other: dict[str, Any] = {"split": eval_split} if eval_split else {}
    if eval_dataset is not None:
        return open_tasks(dataset, **own), open_tasks(eval_dataset, **other)
    # Ids are of one split: where they are named, that one serves for both.
    open_ended = not own.get("split") and own.get("tasks") is None
    both = open_ended and isinstance(dataset, str) and len(splits_of(dataset)) > 1
    if not eval_split and not both:
        return open_tasks(dataset, **own), None
    train: dict[str, Any] = {**own, "split": "train"} if both else own
    held_out: dict[str, Any] = {key: value for key, value in own.items() if key != "decontaminate"}
    held_out["split"] = eval_split or "eval"
    return open_tasks(dataset, **train), open_tasks(dataset, **held_out)


def together(opened: Sequence[Tasks], weights: Sequence[float] | None = None, *, limit: int | None = None) -> Tasks:
    """Several sets as one: one after the other, or by weight (see `interleaved`). Ids are unique: one that an earlier
    set has gets its own set's name in front."""
    name = ", ".join(tasks.name for tasks in opened)

    def start(account: Account) -> Iterator[Found]:
        shares = weights or [1.0] * len(opened)
        parts = [Part(tasks.short, weight, tasks.found(account)) for tasks, weight in zip(opened, shares, strict=True)]
        return islice(unique(parts, interleaved if weights else one_after_another), limit)

    return Tasks(name, start)


def _one(choice: Choice, recorded: bool) -> Tasks:
    sound = read_report(choice.tasks, choice.dataset) if isinstance(choice.tasks, str) else None
    pool = _pool(choice, recorded)
    avoided = (
        Prompts(task for name in choice.decontaminate for task in open_tasks(name)) if choice.decontaminate else None
    )

    def start(account: Account) -> Iterator[Found]:
        found = _all(pool, choice, account)
        if sound is not None:
            found = sound_only(found, sound, account)
        elif choice.tasks is not None:
            found = named_only(found, choice.tasks)
        found = Filter(choice.filter).of(found, account)
        if avoided is not None:
            found = avoided.without(found, account)
        return islice(found, choice.limit)

    return Tasks(choice.dataset, start, short=choice.name)


def _all(pool: Pool, choice: Choice, account: Account) -> Iterator[Found]:
    """Every task of the pool, in the choice's order; bad places are noted.

    :raises TaskError: there are some, and the pool is strict.
    """
    order: Sequence[int] = range(len(pool))
    if choice.seed is not None:
        order = random.Random(choice.seed).sample(order, len(order))
    seen: dict[str, int] = {}
    faults: list[str] = []
    twice: set[str] = set()
    strict = pool.strict if choice.strict is None else choice.strict
    for place in order:
        try:
            entry, task = found_at(pool, place)
        except BadPlace as error:
            account.bad.append(BadRow(place, pool.where(place), error.name, error.reasons))
            if strict:
                faults += [f"{pool.where(place)}: {reason}" for reason in error.reasons]
            continue
        if entry.id in seen:
            twice.add(entry.id)
            reason = f"id: {entry.id!r} is used by {pool.where(seen[entry.id])} too"
            account.bad.append(BadRow(place, pool.where(place), entry.id, (reason,)))
            continue
        seen[entry.id] = place
        yield entry, task
    if strict and (faults or twice):
        raise TaskError(
            faults or [f"{pool.name}: id: {name!r} is used by more than one task" for name in sorted(twice)]
        )


def _pool(choice: Choice, recorded: bool) -> Pool:
    dataset, path = choice.dataset, locate(choice.dataset)
    if dataset.startswith("hf:"):
        return hub_pool(choice)
    named = None if _is_path(dataset) else public_set(dataset)
    if named is not None:
        return public_pool(named, choice)
    if path.is_file() and (choice.columns or choice.kind):
        return file_pool(choice, path)
    if choice.columns or choice.kind or choice.grader:
        raise ValueError("columns: columns, kind and grader go with hf:REPO and with files of rows, which this is not")
    if choice.split:
        raise ValueError(f"split: {dataset} has no splits; public sets have")
    if path.is_dir():
        tasks = load_directory(path, recorded=recorded)
        if not tasks:
            raise TaskError([f"{path}: no tasks; each is a folder with a task.toml"])
        return ListPool(str(path), tasks)
    if path.is_file() and (path.suffix in LINES or path.name.endswith(".jsonl.gz")):
        to_task = partial(task_of, recorded=recorded)
        return RowPool(str(path), JsonlRows(path), to_task, strict=True, limit=float("inf"))
    if path.is_file():
        raise TaskError(
            [f"{path}: a file of tasks must be JSONL and end in .jsonl; rows of another schema need columns"]
        )
    there = f"neither a shipped set ({', '.join(shipped())}) nor a public one ({', '.join(public_sets())})"
    raise FileNotFoundError(f"no dataset {dataset!r}: {there} nor a directory of tasks nor a .jsonl file")
