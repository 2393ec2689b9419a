"""What pod.PodService does with the processes of a box."""

from __future__ import annotations

import asyncio
import math
import re
import shlex
from collections.abc import Awaitable, Callable
from typing import Any

from beta9.clients import types

from codeenv.sandbox.beam.messages import message_class

from .container import Container
from .processes import Gone, Manager, Refused
from .reach import BROKEN, UNREACHABLE, Answer, Reach, Unreachable

KILL_SEEN = 3.0  # how long a kill waits for its process to be gone, in seconds
ProcessInfo = message_class(types.ProcessInfo)
WORD = re.compile(r"[\w@%+=:,./-]+|'[^']*'", re.ASCII)
PLAIN = re.compile(rf"(?:{WORD.pattern})(?: (?:{WORD.pattern}))*", re.ASCII)


def words(command: str) -> list[str]:
    """As a shell splits it. Python's own way takes longer than all else that a call costs, which the server, in Go, is
    not to be charged for; so it is kept for what is not simply quoted. :raises ValueError: a quote is not closed."""
    if PLAIN.fullmatch(command):
        return [word.strip("'") for word in WORD.findall(command)]
    return shlex.split(command)


class Commands(Reach):
    async def SandboxExec(self, request: Any, answer: Answer) -> Any:
        conduct = self._gateway.conduct
        env = dict(request.env)
        for name in request.secrets:
            if name not in self._gateway.store.secrets:
                return answer(ok=False, error_msg="Failed to resolve secrets")
            env[name] = self._gateway.store.secrets[name]
        try:
            argv = words(request.command)
            container = await self._box(request, patience=conduct.exec_connect)
            await self._ready(container)
            if not argv:
                raise Refused(BROKEN)  # the manager falls over it
            # A caller that leaves takes nothing back that has been begun.
            run = await asyncio.shield(self._gateway.do(container.manager.run(argv, request.cwd, env)))
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
        begun = clock()
        until = begun + conduct.inline_wait
        while run.exit_code(conduct.profile) < 0:
            run.changed.clear()
            try:
                async with asyncio.timeout_at(until):
                    await run.changed.wait()
            except TimeoutError:
                break
        if conduct.inline_poll:  # it is seen when the server next looks, for which we need not look all the time
            looks = math.ceil((clock() - begun) / conduct.inline_poll)
            await asyncio.sleep(max(0.0, min(begun + looks * conduct.inline_poll, until) - clock()))
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
