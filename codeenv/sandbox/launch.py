"""Starting the process of a local box."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

NICENESS = 5


@dataclass(frozen=True)
class Launch:
    """How to start a box: the command that becomes the agent, descriptors it needs (those in `own_fds` are closed here
    once it has started), what to do with its pid in a thread while it starts, how many of its processes have died for
    want of memory, what to do when it has gone."""

    argv: list[str]
    pass_fds: tuple[int, ...] = ()
    own_fds: tuple[int, ...] = ()
    workdir: str | None = None
    scratch: str = "/tmp"
    on_start: Callable[[int], None] | None = None
    out_of_memory: Callable[[], int] = lambda: 0
    on_close: Callable[[], None] = lambda: None

    def start(self) -> tuple[subprocess.Popen[bytes], socket.socket]:
        """The process and our end of its control socket. :raises OSError: it could not be started."""
        ours = theirs = None
        try:
            ours, theirs = socket.socketpair()
            # On the event loop's own thread: a box dies with the thread that started it (PR_SET_PDEATHSIG). In a
            # session of its own: Ctrl-C is for us, who may still want the workspace; no variable of ours comes in.
            process = subprocess.Popen(
                self.argv, stdin=theirs.fileno(), stdout=theirs.fileno(), stderr=subprocess.PIPE, env={},
                pass_fds=self.pass_fds, cwd="/", start_new_session=True,
            )  # fmt: skip
            # All that runs in boxes yields to us: on a crowded host the event loop would wait its turn behind them.
            os.setpriority(os.PRIO_PROCESS, process.pid, NICENESS)
            return process, ours
        except BaseException:
            if ours:
                ours.close()
            self.on_close()
            raise
        finally:
            if theirs:
                theirs.close()
            for descriptor in self.own_fds:
                os.close(descriptor)
