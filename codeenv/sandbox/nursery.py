"""Boxes that are forked instead of started: one nursery for all boxes that show the same things.

A box of bubblewrap's costs the start of three programs. A nursery is such a box with our own code as its process 1,
which forks itself into each new box (`box/nursery.py`). One a thread: it dies with the thread that started it.
"""

from __future__ import annotations

import json
import os
import select
import socket
import struct
import subprocess
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import dataclass
from io import FileIO
from typing import BinaryIO

import anyio

from codeenv.sandbox.box.wire import HEADER, pack
from codeenv.sandbox.cgroup import Group
from codeenv.sandbox.launch import Outermost

BORN, DYING, GONE, GO = b"\0born", b"\0dying", b"\0gone", b"g"
KEPT = 8  # nurseries of a thread
USERS = 65_536  # of the host, that one nursery of root's hands out
OWN_USER, FIRST_USER = 1000, 2000
MESSAGE = 65_536
START_SECONDS = 10  # that bwrap may take to say what it has started: about 0.02 elsewhere


@dataclass(frozen=True)
class Start:
    """How to start a nursery. `first_user`: the host's, of a range that root gives it, or None."""

    argv: list[str]
    pass_fds: tuple[int, ...]
    code: bytes
    first_user: int | None


class Nursery:
    def __init__(self, start: Callable[[int, int], Start]) -> None:
        self.first: int | None = None
        with ExitStack() as held:
            info_read, info_write = (held.enter_context(file) for file in _pipe())
            wait_read, wait_write = (held.enter_context(file) for file in _pipe())
            self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            held.enter_context(theirs)
            unused = held.enter_context(ExitStack())
            unused.enter_context(self.control)
            self.control.setblocking(False)
            how = start(info_write.fileno(), wait_read.fileno())
            code = held.enter_context(open(os.memfd_create("agent"), "w+b", buffering=0))
            code.write(how.code)
            code.seek(0)
            # Not as its standard output, which bwrap's own process holds as well and would keep open after its death.
            own = [file.fileno() for file in (info_write, wait_read, theirs)]
            self.process = subprocess.Popen(
                [*how.argv, str(theirs.fileno())], stdin=code, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                env={}, pass_fds=(*how.pass_fds, *own), cwd="/", start_new_session=True,
            )  # fmt: skip
            try:
                info_write.close()
                pid = _pid_from(info_read.fileno())
                # Its process 1, which ends after all that is in it: the one that we have started may end before.
                self.first = os.pidfd_open(pid) if pid else None
                if pid and how.first_user is not None:
                    for name in ("uid_map", "gid_map"):
                        with open(f"/proc/{pid}/{name}", "w") as file:
                            file.write(f"0 {how.first_user} {USERS}")
                    wait_write.write(GO)
            except BaseException:
                _end(os.getpid(), self.process, self.control, self.first)
                raise
            unused.pop_all()
            weakref.finalize(self, _end, os.getpid(), self.process, self.control, self.first)
            self._made, self._range = 0, how.first_user is not None

    @property
    def alive(self) -> bool:
        try:
            return bool(self.control.recv(1))
        except BlockingIOError:
            return True
        except OSError:
            return False

    @property
    def ended(self) -> bool:
        """Whether no process of its boxes is left either."""
        if self.first is None:
            return self.process.poll() is not None
        watch = select.poll()
        watch.register(self.first, select.POLLIN)
        return bool(watch.poll(0))

    def kill(self) -> None:
        self.process.kill()

    def make(self, fields: list[bytes], entrance: BinaryIO | None) -> tuple[socket.socket, socket.socket]:
        """Our ends of a new box's socket and of its lifeline; `entrance` is that of its control group.

        :raises OSError: no descriptor is left.
        """
        user = FIRST_USER + self._made % (USERS - FIRST_USER) if self._range else OWN_USER
        self._made += 1
        held: list[socket.socket] = []
        try:
            ours, theirs = socket.socketpair()
            held += [ours, theirs]
            line, end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            held += [line, end]
            line.setblocking(False)
            line.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            request = pack(b"n", 0, [b"%d" % user, *fields])[HEADER:]
            with suppress(BrokenPipeError, ConnectionResetError):  # it is dead: as the new box's sockets will show
                passed = [theirs, end, *([entrance] if entrance else [])]
                socket.send_fds(self.control, [request], [file.fileno() for file in passed])
            held = [theirs, end]
            return ours, line
        finally:
            for sock in held:
                sock.close()


def _pipe() -> tuple[FileIO, FileIO]:
    read, write = os.pipe()
    return FileIO(read, "rb"), FileIO(write, "wb")


def _pid_from(info: int) -> int | None:
    """Of bwrap's child, as bwrap tells it; None when it has failed, and says why."""
    text = b""
    watch = select.poll()
    watch.register(info, select.POLLIN)
    while b"}" not in text:
        more = os.read(info, 4096) if watch.poll(START_SECONDS * 1000) else b""
        if not more:
            return None
        text += more
    return json.loads(text)["child-pid"]


def _end(owner: int, process: subprocess.Popen[bytes], control: socket.socket, first: int | None) -> None:
    control.close()
    if os.getpid() == owner:  # else a fork of the process whose nursery it is
        process.kill()
        process.wait()
        if process.stderr:
            process.stderr.close()
    if first is not None:
        os.close(first)


class Ward:
    """A box of a nursery's. Implements `Outermost`."""

    greeting = b""

    def __init__(self, nursery: Nursery, line: socket.socket) -> None:
        self._nursery, self._line = nursery, line
        self._pid = 0
        self._said = ""
        self._dying = self._gone = False

    @property
    def pid(self) -> int:
        while not self._pid and self._take():
            pass
        return self._pid

    async def settle(self) -> None:
        """It has done so itself, before it is ready."""

    async def gone(self, seconds: float | None) -> bool:
        with anyio.move_on_after(seconds) as scope:
            try:
                self._line.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # the nursery is dead
            while not self._gone and await self._hear():
                pass
            # Without that message the nursery is dead or dying, its descriptors closed in any order; or it never had
            # those for this box.
            while not (self._gone or self._nursery.ended or self._is_past()):  # noqa: ASYNC110
                await anyio.sleep(0.002)
        return not scope.cancelled_caught

    def _is_past(self) -> bool:
        return not os.path.exists(f"/proc/{self._pid}") if self._pid else self._nursery.alive

    def kill(self) -> None:
        """Of itself it is dying; a nursery that does not even say so answers nobody any more."""
        if not self._dying:
            self._nursery.kill()

    def said(self) -> str:
        while self._take():
            pass
        stream = self._nursery.process.stderr
        if not self._said and stream and not self._nursery.alive and select.select([stream], [], [], 1)[0]:
            self._said = os.read(stream.fileno(), 4096).decode("utf-8", "replace").strip()
        return self._said

    def release(self) -> None:
        self._line.close()

    async def _hear(self) -> bool:
        """Wait for one message and take it; False: there will be none."""
        while (taken := self._take()) is None:
            await anyio.wait_readable(self._line)
        return taken

    def _take(self) -> bool | None:
        """Take one message. None: there is none yet."""
        try:
            data, extra, _, _ = self._line.recvmsg(MESSAGE, socket.CMSG_SPACE(12))
        except BlockingIOError:
            return None
        except OSError:
            return False
        sender = next((struct.unpack("3i", words)[0] for _, kind, words in extra if kind == socket.SCM_CREDENTIALS), 0)
        if data == BORN and not self._pid:
            self._pid = sender
        elif data == DYING:
            self._dying = True
        elif data == GONE and sender != self._pid:
            self._gone = True
        else:
            self._said = (self._said + data.decode("utf-8", "replace")).strip()[-2000:]
        return bool(data)


@dataclass(frozen=True)
class Berth:
    """How to have a box made by a nursery. Implements `codeenv.sandbox.launch.Startable`."""

    key: Hashable
    nursery: Callable[[int, int], Start]
    fields: list[bytes]
    group: Group | None
    workdir: str | None = None
    scratch: str = "/tmp"

    def start(self) -> tuple[Outermost, socket.socket]:
        try:
            nursery = _nursery(self.key, self.nursery)
            with self.group.entrance() if self.group else nullcontext() as entrance:
                ours, line = nursery.make(self.fields, entrance)
        except BaseException:
            self.on_close()
            raise
        return Ward(nursery, line), ours

    def out_of_memory(self) -> int:
        return self.group.out_of_memory() if self.group else 0

    def on_close(self) -> None:
        if self.group:
            self.group.give_back()


class _Kept(threading.local):
    def __init__(self) -> None:
        self.nurseries: OrderedDict[Hashable, Nursery] = OrderedDict()


_kept = _Kept()


def _nursery(key: Hashable, start: Callable[[int, int], Start]) -> Nursery:
    key = (os.getpid(), key)  # a fork of ours has none of its own
    nursery = _kept.nurseries.pop(key, None)
    if nursery is None or not nursery.alive:
        nursery = Nursery(start)
    _kept.nurseries[key] = nursery
    while len(_kept.nurseries) > KEPT:
        _kept.nurseries.popitem(last=False)  # it goes with the last of its boxes
    return nursery
