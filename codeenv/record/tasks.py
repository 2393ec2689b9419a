"""A recording's task, found again where it came from."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from typing import Any, Literal, cast

from codeenv.grading.workspace import start_digest
from codeenv.record.reading import Recording
from codeenv.record.schema import TaskRef
from codeenv.sources import Tasks, train_and_eval
from codeenv.task import Task, TaskError

Changed = Literal["refuse", "tests", "any"]
"""What of a task may be another than it was: nothing; everything but the files that the policy starts with; all."""


class TaskMissing(ValueError):
    """A recording's task is not to be had; the message says from where it was to come, and why not."""


class TaskChanged(ValueError):
    """There is a task of that id, and it is another than the one that was played; the message says what differs."""


class TaskBook:
    """The tasks of recordings. A dataset is opened once, however many recordings are of its tasks; safe to use from
    several threads.

    :param dataset: where every task is to come from, in any form that `codeenv.sources.open_tasks` takes. None: from
        where the recording says. :param changed: what of a task may be another than it was.
    """

    def __init__(self, dataset: Any = None, *, changed: Changed = "refuse") -> None:
        self._dataset = dataset
        self._changed: Changed = changed
        self._opened: dict[str, _Opened | str] = {}
        self._lock = threading.Lock()

    def find(self, recording: Recording) -> Task:
        """Blocks: a dataset that was not opened yet is read.

        :raises TaskMissing: the recording names no dataset, or it cannot be opened, or has no such task.
        :raises TaskChanged: the task is another now, in more than may be.
        """
        ref = recording.opening.task
        source = ref.source if self._dataset is None else self._dataset
        if source is None:
            raise TaskMissing(
                f"{recording.path}: does not say from which dataset its task {ref.id!r} is; name one (--dataset)"
            )
        with self._lock:
            key = json.dumps(source, sort_keys=True, default=str)
            if key not in self._opened:
                self._opened[key] = _open(source)
            opened = self._opened[key]
            if isinstance(opened, str):
                text = f"the dataset of its task {ref.id!r}, {_named(source)}, cannot be opened; another can be named"
                raise TaskMissing(f"{recording.path}: {text} (--dataset): {opened}")
            candidates = list(opened.candidates(ref))
        if not candidates:
            text = f"its task {ref.id!r} is not in {_named(source)}; another dataset can be named (--dataset)"
            raise TaskMissing(f"{recording.path}: {text}")
        for task in candidates:
            if task.digest == ref.digest:
                return task
        for task in candidates:
            if self._changed == "any" or (self._changed == "tests" and start_digest(task) == ref.start):
                return task
        raise TaskChanged(f"{recording.path}: {_why(candidates[0], ref)}")


class _Opened:
    """A dataset's tasks by id, made when they are asked for."""

    def __init__(self, parts: list[Tasks]) -> None:
        self._by_id: dict[str, list[tuple[Tasks, int]]] = {}
        for tasks in parts:
            for place, entry in enumerate(tasks.entries):
                self._by_id.setdefault(entry.id, []).append((tasks, place))

    def candidates(self, ref: TaskRef) -> Iterator[Task]:
        """Those that may be it, under its id: an environment puts a set's name in front of an id that is taken."""
        name = ref.id
        while True:
            for tasks, place in self._by_id.get(name, ()):
                task = tasks[place]
                yield task if task.id == ref.id else task.model_copy(update={"id": ref.id})
            _, slash, name = name.partition("/")
            if not slash:
                return


def _open(source: Any) -> _Opened | str:
    """As `load_environment` opened it; or why that cannot be."""
    own: dict[str, Any] = {}
    if isinstance(source, Mapping) and "dataset" in source:
        own = dict(cast(Mapping[str, Any], source))
        source = own.pop("dataset")
    over = own.pop("eval_dataset", None), own.pop("eval_split", "")
    try:
        train, held_out = train_and_eval(source, own, *over)
        return _Opened([train] if held_out is None else [train, held_out])
    except (TaskError, ValueError, TypeError, OSError) as error:
        return str(error)


def _named(source: Any) -> str:
    return repr(source) if isinstance(source, str) else json.dumps(source, default=str)


def _why(task: Task, ref: TaskRef) -> str:
    if start_digest(task) != ref.start:
        return f"the files that task {task.id!r} starts with are others than when it was played"
    return (
        f"task {task.id!r} is another than when it was played (its digest differs), though it starts with the same "
        "files; `codeenv regrade` judges what was left by the present tests, `--changed-task` replays it all the same"
    )
