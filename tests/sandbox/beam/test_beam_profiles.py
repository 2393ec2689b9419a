"""Every version of the server: the whole of a box's life on each."""

from __future__ import annotations

import os
from typing import Any

import anyio
import pytest

from codeenv.sandbox.archive import Archive
from codeenv.sandbox.beam.provider import BeamProvider
from codeenv.sandbox.beam.sandbox import BeamSandbox
from tests.beam_gateway.profiles import PROFILES
from tests.beam_gateway.server import Gateway
from tests.sandbox.beam.support import opened

pytestmark = pytest.mark.anyio
DATA = os.urandom(3_000_000)


@pytest.mark.parametrize("name", PROFILES)
async def test_a_life_on_each_version(gateway: Gateway, provider: BeamProvider, name: str) -> None:
    gateway.conduct.profile = PROFILES[name]
    box = await opened(provider, env={"COLOUR": "blue"})
    try:
        async with anyio.create_task_group() as group:  # what takes long, at once
            for part in (endings, timeouts, daemons, output, files, processes):
                group.start_soon(part, box)
    finally:
        await box.close()


async def endings(box: BeamSandbox) -> None:
    table: list[tuple[Any, int]] = [
        ("exit 0", 0), ("exit 3", 3), ("exit 124", 124), ("exit 255", 255), ("kill -9 $$", 137), ("kill -15 $$", 143),
        (["nonesuch"], 127), ("sleep 0.5; kill -9 $$", 137), ("sleep 0.5; exit 7", 7),
    ]  # fmt: skip
    for command, code in table:
        result = await box.exec(command)
        assert (result.exit_code, result.timed_out) == (code, False), command
    assert (await box.exec("echo $COLOUR; cat; pwd", stdin=b"in\n")).stdout == b"blue\nin\n/workspace\n"


async def timeouts(box: BeamSandbox) -> None:
    for seconds in (0.4, 0.8):
        result = await box.exec("echo before; sleep 61 & setsid sleep 61; echo after", timeout=seconds)
        assert (result.stdout, result.timed_out) == (b"before\n", True)


async def daemons(box: BeamSandbox) -> None:
    result = await box.exec("setsid sleep 62 & echo started")
    assert (result.stdout, result.exit_code) == (b"started\n", 0)
    assert result.seconds < 30
    assert (await box.exec("pgrep -cf '^sleep 62'")).stdout == b"1\n"


async def output(box: BeamSandbox) -> None:
    for data in (DATA, "é".encode() * 100_000, bytes(range(256)) * 10, b"\xff\xfe\r\n\0", b""):
        await box.write_file("data", data)
        result = await box.exec("cat data; cat data >&2", output_limit=4_000_000)
        assert (result.stdout, result.stderr) == (data, data)
    result = await box.exec("head -c 20000000 /dev/zero", output_limit=1000, save_to="/tmp/saved")
    assert (len(result.stdout), result.stdout_bytes, result.saved_bytes) == (1000, 20_000_000, 20_000_000)


async def files(box: BeamSandbox) -> None:
    await box.write_file("deep/file", DATA, mode=0o640)
    assert await box.read_file("deep/file") == DATA
    assert (await box.exec("stat -c %a deep/file")).stdout == b"640\n"
    await box.import_(Archive.of({"a/b": b"1", "a/c": DATA}), "tree")
    taken = {entry.path: entry.data for entry in await box.export("tree") if entry.kind == "file"}
    assert taken == {"a/b": b"1", "a/c": DATA}
    assert {entry.path for entry in await box.list_files("tree")} == {"a", "a/b", "a/c"}
    await box.remove("tree")
    with pytest.raises(FileNotFoundError, match="tree/a/b"):
        await box.read_file("tree/a/b")


async def processes(box: BeamSandbox) -> None:
    async with box.open_process("cat; exit 5") as process:
        for _ in range(3):
            await process.send(b"ping")
            assert await process.receive() == b"ping"
    async with box.open_process("sleep 0.8; echo late; exit 5") as process:
        assert await process.receive() == b"late\n"
        assert await process.receive() == b""
        assert (await process.wait()).exit_code == 5
