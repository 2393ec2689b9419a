"""What is judged: the workspace that a policy left, as a grading box will see it."""

from __future__ import annotations

from fnmatch import fnmatchcase

from codeenv.sandbox.archive import Archive
from codeenv.task import Task

CACHES = ("__pycache__", "node_modules", "*.pyc", "*.pyo", "*.egg-info", "*.dist-info")
"""Names, besides those that begin with a dot, of what tools leave beside work."""


def workspace_of(task: Task) -> Archive:
    """What the policy starts with."""
    return Archive.of(task.files, dict.fromkeys(task.executable, 0o755))


def tests_of(task: Task) -> Archive:
    """The hidden tests, as they are laid beside the workspace."""
    return Archive.of(task.tests, dict.fromkeys(task.executable, 0o755))


def judged_workspace(task: Task, left: Archive) -> Archive:
    """What the policy left, but for its dot-files and caches, and with protected files as they were at the start.

    Dot-files and caches that the task itself starts with are put back as they were too; only one that the reference
    solution holds is part of the work, and is judged as the policy left it.
    """
    work = set(task.solution or ())

    def is_ours(path: str) -> bool:
        return any(fnmatchcase(path, glob) for glob in task.protected) or (_is_aside(path) and path not in work)

    originals = {path: entry for path, entry in workspace_of(task).entries.items() if is_ours(path)}
    return left.without({path for path in left.entries if is_ours(path)}).overlay(Archive(originals))


def _is_aside(path: str) -> bool:
    return any(part.startswith(".") or any(fnmatchcase(part, glob) for glob in CACHES) for part in path.split("/"))
