"""Hard ceilings for a whole box through a control group, where this host lets us make one; else there are none.

RLIMIT_AS binds each process alone, and files in a tmpfs escape it. A control group binds the sum. Version 2 where its
memory controller is delegated to a directory of ours, version 1 where its memory hierarchy is writable; found by
trying, once.
"""

from __future__ import annotations

import atexit
import os
import secrets
import subprocess
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

ROOT = Path("/sys/fs/cgroup")
PREFIX = "codeenv-"
TRIAL_SECONDS = 5.0
REMOVE_SECONDS = 0.5


@dataclass(frozen=True)
class Hierarchy:
    """A directory below which we may make groups, and the names of its files."""

    parent: Path
    version: int

    @property
    def memory(self) -> str:
        return "memory.max" if self.version == 2 else "memory.limit_in_bytes"

    def make(self, memory_bytes: int) -> Group:
        """One that an earlier box has left, where there is one: to make and remove one costs more than all else of a
        box that is forked. :raises OSError: the kernel refuses."""
        key = (os.getpid(), self.parent, memory_bytes)  # those of a process that we are a fork of are not ours
        with suppress(IndexError):
            return _left[key].pop()
        path = self.parent / f"{PREFIX}{os.getpid()}-{secrets.token_hex(4)}"
        path.mkdir()
        try:
            (path / self.memory).write_text(str(memory_bytes))
            swap = path / ("memory.swap.max" if self.version == 2 else "memory.memsw.limit_in_bytes")
            if swap.exists():
                swap.write_text("0" if self.version == 2 else str(memory_bytes))
        except OSError:
            path.rmdir()
            raise
        return Group(path, key)


@dataclass(frozen=True)
class Group:
    path: Path
    key: tuple[int, Path, int]
    """The process that has made it, where, and its bytes of memory."""

    def take_child(self, pid: int) -> None:
        """Move the one child of `pid` in as soon as it is there: from then on, all that it starts is in. Blocks, mostly
        in the kernel, which waits for all cores to agree (about 8 ms): call it in a thread, while the child starts.
        Returns without having done anything when one of the two has ended.

        :raises OSError: the kernel refuses.
        """
        children = Path(f"/proc/{pid}/task/{pid}/children")
        while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            found = children.read_text().split()
            if found:
                with suppress(ProcessLookupError):
                    (self.path / "cgroup.procs").write_text(found[0])
                return
            time.sleep(0.001)

    def entrance(self) -> BinaryIO:
        """To which a process writes `0` to move itself in, with the rights of ours. :raises OSError: no descriptor is
        left, or the group is gone."""
        return open(self.path / "cgroup.procs", "wb", buffering=0)

    def out_of_memory(self) -> int:
        """How many processes of the group the kernel has killed for want of memory."""
        for name in ("memory.events", "memory.oom_control"):
            try:
                lines = (self.path / name).read_text().splitlines()
            except OSError:
                continue
            return sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))
        return 0

    def give_back(self) -> None:
        """Once its processes are gone: leave it to the next box, unless some process of it ran out of memory, which the
        kernel counts for ever, or is still there."""
        try:
            empty = not (self.path / "cgroup.procs").read_bytes()
        except OSError:
            empty = False
        if empty and not self.out_of_memory():
            _left[self.key].append(self)
        else:
            self.remove()

    def remove(self) -> None:
        """Once its processes are gone. The kernel may take a moment to see that."""
        end = time.monotonic() + REMOVE_SECONDS
        while True:
            try:
                self.path.rmdir()
                return
            except FileNotFoundError:
                return
            except OSError:
                if time.monotonic() > end:
                    return  # the next process of ours that starts here removes it
                time.sleep(0.002)


_left: defaultdict[tuple[int, Path, int], list[Group]] = defaultdict(list)


@atexit.register
def _remove_left() -> None:
    for (pid, *_), groups in _left.items():
        for group in groups:
            if pid == os.getpid():
                group.remove()


@lru_cache(maxsize=1)
def hierarchy() -> Hierarchy | None:
    """Where groups can be made here, shown by making one and running a process in it; None where they cannot."""
    for candidate in _candidates():
        try:
            _sweep(candidate.parent)
            group = candidate.make(64 * 1024 * 1024)
            try:
                with subprocess.Popen(["sleep", str(TRIAL_SECONDS)]) as trial:
                    try:
                        (group.path / "cgroup.procs").write_text(str(trial.pid))
                    finally:
                        trial.kill()
            finally:
                group.remove()
        except OSError:
            continue
        return candidate
    return None


def _candidates() -> list[Hierarchy]:
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    found: list[Hierarchy] = []
    for line in lines:
        number, controllers, path = line.split(":", 2)
        if number == "0":
            own = ROOT / path.lstrip("/")
            # Groups with processes cannot delegate: a sibling of our own group, or a child of the root, can be had.
            found += [Hierarchy(parent, 2) for parent in dict.fromkeys((own, own.parent, ROOT)) if _delegates(parent)]
        elif "memory" in controllers.split(","):
            found.append(Hierarchy(ROOT / "memory" / path.lstrip("/"), 1))
    return found


def _delegates(parent: Path) -> bool:
    try:
        return "memory" in (parent / "cgroup.subtree_control").read_text().split()
    except OSError:
        return False


def _sweep(parent: Path) -> None:
    """Remove the empty groups of processes of ours that were killed."""
    for path in parent.glob(f"{PREFIX}*-*"):
        if not Path("/proc", path.name.split("-")[1]).exists():
            try:
                path.rmdir()
            except OSError:
                pass  # not empty: its processes are still dying
