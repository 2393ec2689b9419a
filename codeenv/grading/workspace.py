"""What is judged: the workspace that a policy left, as a grading box will see it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from fnmatch import fnmatchcase

from codeenv.sandbox.archive import Archive
from codeenv.task import Task

CACHES = ("__pycache__", "node_modules", "*.pyc", "*.pyo", "*.egg-info", "*.dist-info")
"""Names, besides those that begin with a dot, of what tools leave beside work."""
ASIDE = (".*", *CACHES)
"""All of them, as `ArchiveLimits.leave_out` takes them."""


def workspace_of(task: Task) -> Archive:
    """What the policy starts with."""
    return Archive.of(task.files, dict.fromkeys(task.executable, 0o755))


def laid_over(task: Task, files: Mapping[str, bytes]) -> Archive:
    """What the policy starts with and, over it, these files."""
    return workspace_of(task).overlay(Archive.of(files, modes=dict.fromkeys(task.executable, 0o755)))


def start_digest(task: Task) -> str:
    """SHA-256 of what the policy starts with, hexadecimal."""
    found = hashlib.sha256()
    for entry in workspace_of(task):
        head = f"{entry.path}\0{entry.mode:o}\0{entry.size}\0"
        found.update(head.encode() + entry.data)
    return found.hexdigest()


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
        return any(fnmatchcase(path, glob) for glob in task.protected) or (aside(path) and path not in work)

    originals = {path: entry for path, entry in workspace_of(task).entries.items() if is_ours(path)}
    return left.without({path for path in left.entries if is_ours(path)}).overlay(Archive(originals))


def aside(path: str) -> bool:
    """Whether a path is of what tools leave beside work: in a dot-directory, a cache."""
    return any(part.startswith(".") or any(fnmatchcase(part, glob) for glob in CACHES) for part in path.split("/"))
