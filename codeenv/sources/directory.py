"""Tasks from directories, the form they are written in: one folder a task, `task.toml` at its heart."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from codeenv.graders import KINDS
from codeenv.sandbox.archive import Archive
from codeenv.sources.expected import read_expected
from codeenv.task import Limits, Task, TaskError

FOLDERS = ("workspace", "tests", "solution", "wrong")
KEYS = ("grader", "limits", "metadata", "protected", "packages", "python", "image", "workdir", "family", "answer")


def load_directory(root: Path, *, recorded: bool = True) -> list[Task]:
    """Every task below `root`, in order of id. `root` may itself be one task.

    :raises TaskError: one fault a line, all of them at once.
    """
    folders = [root] if (root / "task.toml").is_file() else sorted(p.parent for p in root.glob("*/task.toml"))
    strays = [p for p in sorted(root.iterdir()) if p.is_dir() and p not in folders and _looks_like_a_task(p)]
    faults = [
        f"{stray}: task.toml is missing (tables: grader, limits, metadata)" for stray in strays if root not in folders
    ]
    tasks: list[Task] = []
    for folder in folders:
        try:
            tasks.append(load_task(folder, recorded=recorded))
        except TaskError as error:
            faults += error.faults
    if faults:
        raise TaskError(faults)
    return tasks


def _looks_like_a_task(folder: Path) -> bool:
    return (folder / "instruction.md").exists() or (folder / "tests").exists()


def load_task(folder: Path, *, recorded: bool = True) -> Task:
    """One task directory; `recorded`: with the ids of its tests that stand in `expected.json`.

    :raises TaskError: it is malformed.
    """
    config = folder / "task.toml"
    faults: list[str] = []
    try:
        settings: dict[str, Any] = tomllib.loads(config.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise TaskError([f"{config}: not valid TOML: {error}"]) from error
    faults += [f"{config}: {key}: unknown; allowed: {', '.join(KEYS)}" for key in settings if key not in KEYS]
    faults += [
        f"{path}: unknown; the folders of a task are {', '.join(FOLDERS)}"
        for path in sorted(folder.iterdir())
        if path.is_dir() and path.name not in FOLDERS and not path.name.startswith((".", "_"))
    ]
    faults += [f"{folder / name}: must be a folder" for name in FOLDERS if (folder / name).is_file()]
    instruction = folder / "instruction.md"
    try:
        text = instruction.read_text(encoding="utf-8")
    except FileNotFoundError:
        faults.append(f"{instruction}: missing; it holds what the policy reads")
        text = "-"
    except UnicodeDecodeError as error:
        faults.append(f"{instruction}: must be UTF-8: {error}")
        text = "-"
    if recorded:
        faults += read_expected(folder, settings)
    trees = {
        name: Archive.from_directory(folder / name)
        for name in ("workspace", "tests", "solution")
        if (folder / name).is_dir()
    }
    wrong = {p.name: Archive.from_directory(p) for p in sorted(folder.glob("wrong/*")) if p.is_dir()}
    fields = {
        "id": folder.name,
        "instruction": text,
        "files": trees["workspace"].files if "workspace" in trees else {},
        "tests": trees["tests"].files if "tests" in trees else {},
        "solution": trees["solution"].files if "solution" in trees else None,
        "wrong": {name: tree.files for name, tree in wrong.items()},
        "executable": frozenset(e.path for tree in trees.values() for e in tree if e.mode & 0o100),
        **{key: value for key, value in settings.items() if key in KEYS},
    }
    try:
        task = Task.model_validate(fields)
    except ValidationError as error:
        raise TaskError(faults + describe(error, config)) from error
    if faults:
        raise TaskError(faults)
    return task


def describe(error: ValidationError, where: Path | str = "") -> list[str]:
    """One line a fault: where, which field, what is allowed. Hidden content is never quoted."""
    begin = f"{where}: " if where else ""
    lines: list[str] = []
    for fault in error.errors(include_url=False, include_input=False):
        # Without the tag of the grader's kind, and pydantic's word for "the key itself".
        parts = [str(part) for at, part in enumerate(fault["loc"]) if not (at == 1 and fault["loc"][0] == "grader")]
        field = ".".join(part for part in parts if part != "[key]") or "task"
        message = fault["msg"].removeprefix("Value error, ")
        if fault["type"] == "extra_forbidden":
            message = f"unknown; allowed: {', '.join(_siblings(fault['loc']))}"
        lines.append(f"{begin}{message if message.startswith('tests:') else f'{field}: {message}'}")
    return lines


def _siblings(loc: tuple[int | str, ...]) -> list[str]:
    """The fields that are known where a field is not."""
    models: dict[object, type[BaseModel]] = {"limits": Limits}
    models |= {kind.model_fields["kind"].default: kind for kind in KINDS}
    return [*(models.get(loc[-2], Task) if len(loc) > 1 else Task).model_fields]
