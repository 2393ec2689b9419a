"""A container in which commands are root's, as Beam's are and the gateway's cannot be: namespaces over a throw-away
layer on this machine's file system, made by root. What a gateway does is left out: a command is run, once, and its
output comes back."""

from __future__ import annotations

import asyncio
import os
import platform
import subprocess
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import cache
from typing import Any, cast

from codeenv.sandbox.api import Capabilities, Probe, Sandbox, SandboxLost, SandboxSpec, opened
from codeenv.sandbox.beam.container import Container
from codeenv.sandbox.beam.provider import BeamProvider
from codeenv.sandbox.beam.sandbox import BeamSandbox

SETUP = """
set -e
mount --make-rprivate /
mount -t tmpfs layers /mnt
mkdir /mnt/upper /mnt/work /mnt/root
mount -t overlay all -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work /mnt/root
cd /mnt/root
mount -t proc proc proc
mount -t tmpfs -o mode=1777 tmp tmp
mount -t tmpfs dev dev
for name in null zero full random urandom; do touch dev/$name; mount --bind /dev/$name dev/$name; done
mkdir -m 1777 dev/shm
ln -s /proc/self/fd dev/fd
chmod 755 dev
exec chroot . sh -c "echo ready; exec sleep infinity"
"""
ENV = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "HOME": "/root"}


@cache
def why_not() -> str:
    """Why there can be none here; empty: there can."""
    if os.geteuid() != 0:
        return "only root can make a container in which commands are root's"
    try:
        with started() as process:
            process.kill()
    except (OSError, RuntimeError) as error:
        return f"root cannot make such a container here: {error}"
    return ""


def started() -> subprocess.Popen[bytes]:
    command = ["unshare", "--mount", "--pid", "--net", "--ipc", "--fork", "--kill-child", "sh", "-c", SETUP]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, env=ENV, cwd="/")
    assert process.stdout
    assert process.stderr
    if process.stdout.readline() != b"ready\n":
        process.kill()
        raise RuntimeError(process.stderr.read().decode().strip())
    return process


class RootedContainer:
    """What `BeamSandbox` asks of a `Container`."""

    def __init__(self) -> None:
        self._process = started()
        with open(f"/proc/{self._process.pid}/task/{self._process.pid}/children") as file:
            self.pid = int(file.read().split()[0])
        self._runs: set[asyncio.Task[bytes]] = set()
        self._ended = asyncio.get_running_loop().create_future()

    async def run(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        patience: float | None = None,
        meanwhile: Callable[[], Awaitable[None]] | None = None,
        whole: Callable[[str], bool] | None = None,
    ) -> str:
        return (await self._do(argv, env=env)).decode()

    async def upload(self, path: str, data: bytes) -> None:
        await self._do(["sh", "-c", f"umask 077; cat > {path}"], data)

    async def _do(self, argv: Sequence[str], data: bytes = b"", env: Mapping[str, str] | None = None) -> bytes:
        if self._ended.done():
            raise SandboxLost("it is closed", stage="connection")
        task = asyncio.get_running_loop().create_task(self._one(argv, data, env))
        self._runs.add(task)
        task.add_done_callback(self._runs.discard)
        # A caller that leaves takes no command with it.
        done, _ = await asyncio.wait([task, self._ended], return_when=asyncio.FIRST_COMPLETED)
        if task not in done:
            raise SandboxLost("it is closed", stage="connection")
        return task.result()

    async def _one(self, argv: Sequence[str], data: bytes, env: Mapping[str, str] | None) -> bytes:
        enter = ["nsenter", f"--target={self.pid}", "--mount", "--pid", "--net", "--ipc", "--root", "--wd", "--"]
        process = await asyncio.create_subprocess_exec(
            *enter, *argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env={**ENV, **(env or {})}, cwd="/",
        )  # fmt: skip
        return (await process.communicate(data))[0]

    def hang_up(self) -> None:
        if not self._ended.done():
            self._ended.set_result(None)

    async def end(self) -> None:
        self._process.kill()
        self._process.wait()
        if self._runs:
            await asyncio.wait(self._runs)
        for stream in (self._process.stdout, self._process.stderr):
            assert stream
            stream.close()


class RootedProvider:
    """Boxes as BeamProvider's, in such containers."""

    name = "rooted"

    def probe(self) -> Probe:
        error = why_not()
        return Probe(self.name, not error, error, self.capabilities, {"kernel": platform.release()})

    @property
    def capabilities(self) -> Capabilities:
        return BeamProvider(host="gateway.example", port=443, token="none").capabilities

    def check(self, spec: SandboxSpec) -> None:
        pass

    def create(self, spec: SandboxSpec) -> AbstractAsyncContextManager[Sandbox]:
        return opened(self, spec)

    async def open(self, spec: SandboxSpec) -> BeamSandbox:
        container = RootedContainer()

        async def end(_: Any) -> None:
            await container.end()

        box = BeamSandbox(spec, cast(Container, container), end)
        try:
            await box.start()
        except BaseException:
            await box.close()
            raise
        return box
