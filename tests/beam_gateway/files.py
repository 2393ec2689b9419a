"""What pod.PodService does with the files of a box."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from beta9.clients import pod, types

from .container import Container
from .messages import message_class
from .processes import Manager, Refused
from .reach import Answer, Reach

FileInfo = message_class(pod.PodSandboxFileInfo)
FileSearchResult = message_class(types.FileSearchResult)


class Files(Reach):
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


def _file_info(fields: list[bytes]) -> Any:
    name, (mode, size, modified, owner, group, is_dir) = fields[0], (int(field) for field in fields[1:])
    return FileInfo(
        mode=mode - (1 << 32) if mode >= 1 << 31 else mode, permissions=mode, size=size, mod_time=modified,
        owner=str(owner), group=str(group), is_dir=bool(is_dir), name=name.decode("utf-8", "replace"),
    )  # fmt: skip
