"""What differs between versions of the server and of the process manager in its boxes, and how fast it all goes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Profile:
    """One version. The default is a server as new as the installed SDK, with the manager that it brings."""

    failures_are_one: bool = False
    """Every exit code but 0 is told as 1, a signal's death too: manager 0.1.5, until June 2026."""
    signals: Literal["shell", "running"] = "shell"
    """A death by signal n: 128+n; or -1, as if it ran, for ever."""
    waits_for_output: bool = False
    """A command runs on for as long as anything holds its stdout or stderr."""
    kills_tree: bool = True
    """A kill takes all that a process started, not only itself."""
    marks_killed: bool = True
    """What was killed on request and is gone from the box counts as ended with 137, whatever its manager says."""
    inline_wait: bool = True
    """`wait` of an exec is heeded: servers since June 2026."""
    ranged_files: bool = True
    """Offsets and lengths of files are heeded: servers newer than August 2026."""
    moves_uploads: bool = True
    """An upload is moved to its place and given its mode, as where boxes are gVisor's; else written in place."""
    token_in_box: bool = False
    """The caller's token is in every process's environment, as BETA9_TOKEN."""


PROFILES = {
    "newest": Profile(),
    "august-2026": Profile(
        signals="running", waits_for_output=True, kills_tree=False, ranged_files=False, token_in_box=True
    ),
    "early-2026": Profile(
        failures_are_one=True, waits_for_output=True, kills_tree=False, marks_killed=False, inline_wait=False,
        ranged_files=False, token_in_box=True,
    ),
    "runc": Profile(moves_uploads=False),
}  # fmt: skip


@dataclass
class Conduct:
    """What the server does and how fast; may be changed at any time. Times in seconds, sizes in bytes."""

    profile: Profile = field(default_factory=Profile)
    quota: int | None = None
    """More boxes than this at once: CreatePod fails with the server's words for it."""
    starting_at_once: int | None = None
    """No more boxes than this start at once; the others are pending."""
    scheduling: float = 0.0
    """How long a new box is pending, without a worker."""
    readiness: float = 0.0
    """How long a box runs before its process manager answers."""
    start_fails: bool = False
    """Boxes that start now fail with exit code 1."""
    images_exist: bool = True
    """An image that nobody has built is there all the same."""
    build_fails: str = ""
    """Image builds end with this message, and without success."""
    stopping: float = 0.0
    """How long a box that was told to stop is still there, status `stopping`."""
    ttl_check: float = 1.0
    """Boxes whose time is up are looked for this often."""
    exit_codes_kept: float = 300.0
    way: float = 0.0
    """How long a request is on its way to the gateway and its answer on the way back, together."""
    inline_wait: float = 0.75
    inline_poll: float = 0.0
    """The server looks this often whether a command that is waited for has ended (it does every 0.02 s). 0: at once."""
    exec_connect: float = 3.0
    """An exec to a box that is not there is retried for this long before it fails."""
    manager_wait: float = 10.0
    """How long an exec waits for a process manager that is not ready."""
    connect_ready: float = 25.0
    """How long a connect waits for a box to become ready."""
    address_wait: float = 1.5
    """How long anything else waits for a box to have a worker."""
    agent_message: int = 4 * 1024 * 1024
    """What one message from the process manager may hold."""
    message: int = 16 * 1024 * 1024
    """What one message of the gateway's may hold. Read when the gateway starts."""
