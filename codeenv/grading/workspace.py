"""What is judged: the workspace that a policy left, as a grading box will see it."""

from __future__ import annotations

from fnmatch import fnmatchcase

from codeenv.sandbox.archive import Archive
from codeenv.task import Task


def workspace_of(task: Task) -> Archive:
    """What the policy starts with."""
    return Archive.of(task.files, dict.fromkeys(task.executable, 0o755))


def judged_workspace(task: Task, left: Archive) -> Archive:
    """What the policy left, without byte-code, its protected files as they were at the start."""
    drop = {
        path
        for path in left.entries
        if "__pycache__" in path.split("/")
        or path.endswith((".pyc", ".pyo"))
        or any(fnmatchcase(path, glob) for glob in task.protected)
    }
    originals = {p: e for p, e in workspace_of(task).entries.items() if any(fnmatchcase(p, g) for g in task.protected)}
    return left.without(drop).overlay(Archive(originals))
