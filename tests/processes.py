"""Processes as the host sees them, in whatever box they are."""

from __future__ import annotations

import random
from pathlib import Path


def unique_seconds() -> str:
    """How long a process shall sleep, and the argument by which the host finds it."""
    return f"987{random.SystemRandom().randrange(10**6):06}"


def processes_with(argument: str) -> list[int]:
    """Pids of the living ones that have it."""
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if argument.encode() in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found
