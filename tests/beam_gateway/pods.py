"""pod.PodService: boxes, the processes in them and their files, in the server's own words where it fails."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from beta9.clients import pod, types

from .container import Container
from .messages import message_class
from .processes import Gone, Manager, Refused

if TYPE_CHECKING:
    from .server import Gateway

Answer = Callable[..., Any]

UNREACHABLE = "Failed to connect to sandbox"
BROKEN = "rpc error: code = Unavailable desc = error reading from server: EOF"
KILL_SEEN = 3.0
FileInfo = message_class(pod.PodSandboxFileInfo)
FileSearchResult = message_class(types.FileSearchResult)
ProcessInfo = message_class(types.ProcessInfo)


class Unreachable(Exception):
    """There is no such box, or it has no worker."""


class Pods:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    # --- boxes -------------------------------------------------------------------------------------------------------

    async def CreatePod(self, request: Any, answer: Answer) -> Any:
        stub = self._gateway.store.stubs.get(request.stub_id)
        if stub is None or request.HasField("checkpoint_id"):
            return answer(ok=False)
        quota = self._gateway.conduct.quota
        if quota is not None and len(self._gateway.active()) >= quota:
            return answer(ok=False, error_msg="concurrency_limit_reached: cpu quota exceeded", stub_id=stub.id)
        image_id = request.image_id if request.HasField("image_id") else stub.request.image_id
        made = self._gateway.add(Container(self._gateway, stub, image_id))
        return answer(ok=True, container_id=made.id, stub_id=stub.id)

    async def SandboxConnect(self, request: Any, answer: Answer) -> Any:
        # One that is not there is waited for as well, and as long.
        try:
            async with asyncio.timeout(self._gateway.conduct.connect_ready):
                container = await self._box(request, patience=self._gateway.conduct.connect_ready)
                await container.wait_ready()
        except (TimeoutError, Refused, Unreachable):
            return answer(ok=False, error_msg=UNREACHABLE)
        return answer(ok=True, stub_id=container.stub.id)

    async def SandboxUpdateTTL(self, request: Any, answer: Answer) -> Any:
        try:
            (await self._box(request)).set_ttl(request.ttl if request.ttl > 0 else -1)
        except Unreachable:
            return answer(ok=False, error_msg=UNREACHABLE)
        return answer(ok=True)

    async def SandboxCreateImageFromFilesystem(self, request: Any, answer: Answer) -> Any:
        try:
            image = await (await self._box(request)).archive(request.stub_id)
        except Unreachable:
            return answer(ok=False, error_msg=UNREACHABLE)
        except Refused as error:
            return answer(ok=False, error_msg=str(error))
        return answer(ok=True, image_id=image.id)

    async def SandboxUpdateNetworkPermissions(self, request: Any, answer: Answer) -> Any:
        return await self._in_box(request, answer, self._no_network)

    async def SandboxExposePort(self, request: Any, answer: Answer) -> Any:
        return await self._in_box(request, answer, self._no_network)

    async def SandboxListUrls(self, request: Any, answer: Answer) -> Any:
        return await self._in_box(request, answer, self._no_urls)

    async def _no_network(self, container: Container, manager: Manager) -> dict[str, Any]:
        raise Refused("container network manager unavailable")

    async def _no_urls(self, container: Container, manager: Manager) -> dict[str, Any]:
        return {}

    # --- processes ---------------------------------------------------------------------------------------------------

    async def SandboxExec(self, request: Any, answer: Answer) -> Any:
        conduct = self._gateway.conduct
        env = dict(request.env)
        for name in request.secrets:
            if name not in self._gateway.store.secrets:
                return answer(ok=False, error_msg="Failed to resolve secrets")
            env[name] = self._gateway.store.secrets[name]
        try:
            argv = shlex.split(request.command)
            container = await self._box(request, patience=conduct.exec_connect)
            await self._ready(container)
            if not argv:
                raise Refused(BROKEN)  # the manager falls over it
            run = await container.manager.run(argv, request.cwd, env)
            told = {"ok": True, "pid": run.pid}
            if request.wait and conduct.profile.inline_wait and await self._ended(container, run.pid):
                limit = conduct.agent_message
                told |= {"done": True, "exit_code": run.exit_code(conduct.profile)}
                told |= {"stdout": run.take(b"o", limit), "stderr": run.take(b"e", limit)}
            return answer(**told)
        except Unreachable:
            return answer(ok=False, error_msg=UNREACHABLE)
        except (Refused, ValueError) as error:
            return answer(ok=False, error_msg=str(error))
        except Gone:
            return answer(ok=False, error_msg=BROKEN)

    async def _ended(self, container: Container, pid: int) -> bool:
        """Whether a command ends within the time that the server waits for it."""
        conduct, run = self._gateway.conduct, container.runs[pid]
        clock = asyncio.get_running_loop().time
        until = clock() + conduct.inline_wait
        while run.exit_code(conduct.profile) < 0 and clock() + conduct.inline_poll < until:
            if conduct.inline_poll:
                await asyncio.sleep(conduct.inline_poll)
                continue
            run.changed.clear()
            try:
                async with asyncio.timeout_at(until):
                    await run.changed.wait()
            except TimeoutError:
                break
        return run.exit_code(conduct.profile) >= 0

    async def SandboxStatus(self, request: Any, answer: Answer) -> Any:
        if request.pid == 0:
            return self._box_status(request, answer)

        async def status(container: Container, manager: Manager) -> dict[str, Any]:
            code = container.run_of(request.pid).exit_code(self._gateway.conduct.profile)
            return {"status": "running" if code < 0 else "exited", "exit_code": code}

        return await self._in_box(request, answer, status)

    def _box_status(self, request: Any, answer: Answer) -> Any:
        container = self._gateway.containers.get(request.container_id)
        if container is None or (container.status == "GONE" and container.exit_code in (None, -1)):
            return answer(ok=False, error_msg="Failed to get sandbox status")
        if container.status == "GONE":
            return answer(ok=True, status="exited", exit_code=container.exit_code)
        status = container.status.lower()
        if status == "running" and not container.ready.is_set():
            status = "pending"
        return answer(ok=True, status=status, exit_code=-1)

    async def SandboxStdout(self, request: Any, answer: Answer) -> Any:
        return await self._in_box(request, answer, self._taking(request, b"o", "stdout"))

    async def SandboxStderr(self, request: Any, answer: Answer) -> Any:
        return await self._in_box(request, answer, self._taking(request, b"e", "stderr"))

    def _taking(self, request: Any, stream: bytes, name: str) -> Callable[..., Awaitable[dict[str, Any]]]:
        async def take(container: Container, manager: Manager) -> dict[str, Any]:
            return {name: container.run_of(request.pid).take(stream, self._gateway.conduct.agent_message)}

        return take

    async def SandboxKill(self, request: Any, answer: Answer) -> Any:
        async def kill(container: Container, manager: Manager) -> dict[str, Any]:
            profile, run = self._gateway.conduct.profile, container.run_of(request.pid)
            if run.status is not None:
                raise Refused("os: process already finished")
            await manager.kill(run.pid, tree=profile.kills_tree)
            clock = asyncio.get_running_loop().time
            until = clock() + KILL_SEEN
            while run.status is None and clock() < until:
                await asyncio.sleep(0.005)
            run.marked = profile.marks_killed and run.status is not None
            run.changed.set()
            return {}

        return await self._in_box(request, answer, kill)

    async def SandboxListProcesses(self, request: Any, answer: Answer) -> Any:
        async def processes(container: Container, manager: Manager) -> dict[str, Any]:
            codes = [(run, run.exit_code(self._gateway.conduct.profile)) for run in container.runs.values()]
            return {
                "processes": [
                    ProcessInfo(
                        running=code < 0, pid=run.pid, cmd=run.command, cwd=run.cwd, env=run.env, exit_code=code
                    )
                    for run, code in codes
                ]
            }

        return await self._in_box(request, answer, processes, wait=True)

    # --- files -------------------------------------------------------------------------------------------------------

    async def SandboxUploadFile(self, request: Any, answer: Answer) -> Any:
        profile = self._gateway.conduct.profile
        offset = request.offset if profile.ranged_files else 0
        fields = (request.mode, offset, request.data, int(profile.moves_uploads))
        return await self._file(request, answer, "upload", "write file to", *fields)

    async def SandboxDownloadFile(self, request: Any, answer: Answer) -> Any:
        ranged = (request.offset, request.length) if self._gateway.conduct.profile.ranged_files else (0, 0)

        def told(fields: list[bytes]) -> dict[str, Any]:
            if len(fields[0]) > self._gateway.conduct.message:
                raise Refused(
                    f"rpc error: code = ResourceExhausted desc = {len(fields[0])} bytes are more than a message"
                )
            return {"data": fields[0]}

        return await self._file(request, answer, "download", "read file from", *ranged, told=told)

    async def SandboxStatFile(self, request: Any, answer: Answer) -> Any:
        def told(fields: list[bytes]) -> dict[str, Any]:
            return {"file_info": _file_info(fields)}

        return await self._file(request, answer, "stat", "stat file", told=told)

    async def SandboxListFiles(self, request: Any, answer: Answer) -> Any:
        def told(fields: list[bytes]) -> dict[str, Any]:
            return {"files": [_file_info(fields[at : at + 7]) for at in range(0, len(fields), 7)]}

        return await self._file(request, answer, "list", "list files in", told=told)

    async def SandboxDeleteFile(self, request: Any, answer: Answer) -> Any:
        return await self._file(request, answer, "remove", "delete file")

    async def SandboxCreateDirectory(self, request: Any, answer: Answer) -> Any:
        return await self._file(request, answer, "mkdir", "create directory", request.mode)

    async def SandboxDeleteDirectory(self, request: Any, answer: Answer) -> Any:
        return await self._file(request, answer, "remove", "delete directory")

    async def SandboxReplaceInFiles(self, request: Any, answer: Answer) -> Any:
        fields = (request.pattern.encode(), request.new_string.encode())
        return await self._file(request, answer, "replace", "replace in files at", *fields)

    async def SandboxFindInFiles(self, request: Any, answer: Answer) -> Any:
        def told(fields: list[bytes]) -> dict[str, Any]:
            found: dict[str, Any] = {}
            for at in range(0, len(fields), 5):
                name, line, start, end, text = (field.decode("utf-8", "replace") for field in fields[at : at + 5])
                hit = found.setdefault(name, FileSearchResult(path=name)).matches.add(content=text)
                hit.range.start.line = hit.range.end.line = int(line)
                hit.range.start.column, hit.range.end.column = int(start), int(end)
            return {"results": list(found.values())}

        return await self._file(request, answer, "search", "search in", request.pattern.encode(), told=told)

    async def _file(
        self,
        request: Any,
        answer: Answer,
        operation: str,
        verb: str,
        *fields: bytes | int,
        told: Callable[[list[bytes]], dict[str, Any]] = lambda fields: {},
    ) -> Any:
        async def do(container: Container, manager: Manager) -> dict[str, Any]:
            path = container.path(request.container_path)
            try:
                return told(await manager.file(operation, path, *fields))
            except Refused as error:
                raise Refused(f"failed to {verb} {path}: {error}") from None

        return await self._in_box(request, answer, do, wait=True)

    # --- the box that a request names --------------------------------------------------------------------------------

    async def _in_box(
        self,
        request: Any,
        answer: Answer,
        do: Callable[[Container, Manager], Awaitable[dict[str, Any]]],
        *,
        wait: bool = False,
    ) -> Any:
        try:
            container = await self._box(request)
            if wait:
                await self._ready(container)
            return answer(ok=True, **await do(container, container.manager))
        except Unreachable:
            return answer(ok=False, error_msg=UNREACHABLE)
        except Refused as error:
            return answer(ok=False, error_msg=str(error))
        except Gone:
            return answer(ok=False, error_msg=BROKEN)

    async def _ready(self, container: Container) -> None:
        """Wait for its process manager, which here does the files as well. :raises Refused: it takes too long."""
        if not container.ready.is_set():
            try:
                async with asyncio.timeout(self._gateway.conduct.manager_wait):
                    await container.wait_ready()
            except TimeoutError:
                raise Refused("Process manager not ready within timeout") from None

    async def _box(self, request: Any, patience: float = 0.0) -> Container:
        """The box, once it has a worker. One that is gone is looked for again for `patience` seconds.

        :raises Unreachable: it is not there, or has no worker yet.
        """
        clock = asyncio.get_running_loop().time
        until = clock() + patience
        while True:
            container = self._gateway.containers.get(request.container_id)
            if container is not None and container.running.is_set():
                return container
            if container is not None and container.status == "PENDING":
                try:
                    async with asyncio.timeout_at(max(until, clock() + self._gateway.conduct.address_wait)):
                        await container.running.wait()
                    return container
                except TimeoutError:
                    raise Unreachable from None
            if container is not None and container.status == "STOPPING":
                raise Refused("Container not found")
            if clock() >= until:
                raise Unreachable
            await asyncio.sleep(0.05)


def _file_info(fields: list[bytes]) -> Any:
    name, (mode, size, modified, owner, group, is_dir) = fields[0], (int(field) for field in fields[1:])
    return FileInfo(
        mode=mode - (1 << 32) if mode >= 1 << 31 else mode, permissions=mode, size=size, mod_time=modified,
        owner=str(owner), group=str(group), is_dir=bool(is_dir), name=name.decode("utf-8", "replace"),
    )  # fmt: skip
