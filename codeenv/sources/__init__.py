"""Where tasks come from. `load_tasks` is the door; each form of source is one small module."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from codeenv.resources import resource
from codeenv.sources.directory import load_directory
from codeenv.sources.expected import record
from codeenv.sources.jsonl import load_jsonl
from codeenv.sources.public import load_public, public_set
from codeenv.task import Task, TaskError

__all__ = ["choose_tasks", "load_tasks", "locate", "record", "shipped"]


def shipped() -> list[str]:
    """Names of the task sets that come with codeenv."""
    return sorted(p.name for p in resource("datasets").iterdir() if p.is_dir() and any(p.glob("*/task.toml")))


def locate(dataset: str | Path) -> Path:
    """Where a dataset is: a shipped set by name, or a path. What begins with `.`, `/` or `~` is always a path."""
    named = resource("datasets") / str(dataset)
    path = Path(dataset).expanduser()
    if not str(dataset).startswith((".", "/", "~")) and ".." not in path.parts and named.is_dir():
        return named
    return path


def load_tasks(dataset: str | Path, *, recorded: bool = True) -> list[Task]:
    """The tasks of a shipped set (`starter`), of one task of it (`starter/<id>`), of a directory (of tasks, or one
    task), or of a JSONL file.

    :param recorded: whether the ids of tests that `codeenv validate --record` wrote down count.
    :raises TaskError: tasks are malformed, all faults at once; or there are none; or two have one id.
    :raises FileNotFoundError: there is no such dataset; the message lists the shipped ones.
    """
    path = locate(dataset)
    public = None if path.exists() else public_set(str(dataset))
    if public is not None:
        tasks, _ = load_public(*public)
    elif path.is_dir():
        tasks = load_directory(path, recorded=recorded)
    elif path.is_file() and path.suffix in (".jsonl", ".ndjson"):
        tasks = load_jsonl(path, recorded=recorded)
    elif path.is_file():
        raise TaskError([f"{path}: a file of tasks must be JSONL and end in .jsonl"])
    else:
        sets = ", ".join(shipped())
        text = f"no dataset {str(dataset)!r}: neither a shipped set ({sets}) nor a directory of tasks nor a .jsonl file"
        raise FileNotFoundError(text)
    if not tasks:
        raise TaskError([f"{path}: no tasks; each is a folder with a task.toml"])
    twice = sorted(name for name, count in Counter(task.id for task in tasks).items() if count > 1)
    if twice:
        raise TaskError([f"{path}: id: {name!r} is used by more than one task" for name in twice])
    return tasks


def choose_tasks(loaded: Sequence[Task], names: Sequence[str] | None) -> list[Task]:
    """Those with these ids, in this order; all when None. :raises ValueError: there is no such task, or none is named;
    the message lists those that there are."""
    if names is None:
        return list(loaded)
    by_id = {task.id: task for task in loaded}
    missing = [name for name in names if name not in by_id]
    if missing or not names:
        raise ValueError(f"tasks: no such task: {', '.join(missing) or 'none named'}; there are: {', '.join(by_id)}")
    return [by_id[name] for name in names]
