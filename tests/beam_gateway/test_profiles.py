"""What differs between versions of the server and its boxes' process managers, seen through plain gRPC."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import grpc
import grpc.aio
import pytest

from codeenv.sandbox.api import MiB
from tests.beam_gateway.client import Client
from tests.beam_gateway.container import OUT_OF_MEMORY
from tests.beam_gateway.profiles import PROFILES, Profile
from tests.beam_gateway.server import Gateway

pytestmark = pytest.mark.anyio
RUNS = -1  # the exit code of what has not ended, or so its server says


@pytest.mark.parametrize(
    ("profile", "command", "code"),
    [
        (Profile(), "true", 0),
        (Profile(), "sh -c 'exit 3'", 3),
        (Profile(), "sh -c 'kill -15 $$'", 143),
        (Profile(failures_are_one=True), "true", 0),
        (Profile(failures_are_one=True), "sh -c 'exit 3'", 1),
        (Profile(failures_are_one=True), "sh -c 'kill -15 $$'", 1),
        (Profile(signals="running"), "sh -c 'exit 3'", 3),
        (Profile(signals="running"), "sh -c 'kill -15 $$'", RUNS),
    ],
    ids=["true", "three", "signal", "one-true", "one-three", "one-signal", "running-three", "running-signal"],
)
async def test_exit_codes(
    gateway: Gateway, client: Client, box: str, profile: Profile, command: str, code: int
) -> None:
    gateway.conduct.profile, gateway.conduct.inline_wait = profile, 0.3 if code == RUNS else 30.0
    answer = await client.exec(box, command)
    assert (answer.ok, answer.done) == (True, code != RUNS)
    status = await client("SandboxStatus", container_id=box, pid=answer.pid)
    assert (status.exit_code, status.status) == (code, "running" if code == RUNS else "exited")


@pytest.mark.parametrize(
    ("profile", "code"),
    [
        (Profile(), 137),
        (Profile(signals="running"), 137),
        (Profile(signals="running", marks_killed=False), RUNS),
        (Profile(failures_are_one=True), 1),
    ],
    ids=["shell", "marked", "unmarked", "one"],
)
async def test_what_a_killed_command_ends_with(
    gateway: Gateway, client: Client, box: str, profile: Profile, code: int
) -> None:
    gateway.conduct.profile = profile
    running = await client.exec(box, "sleep 600", wait=False)
    assert (await client("SandboxKill", container_id=box, pid=running.pid)).ok
    assert (await client("SandboxStatus", container_id=box, pid=running.pid)).exit_code == code
    again = await client("SandboxKill", container_id=box, pid=running.pid)
    assert (again.ok, again.error_msg) == (False, "os: process already finished")


@pytest.mark.parametrize("tree", [True, False], ids=["tree", "process"])
async def test_what_a_kill_takes(gateway: Gateway, client: Client, box: str, tree: bool) -> None:
    gateway.conduct.profile = Profile(kills_tree=tree)
    parent = await client.exec(box, "sh -c 'sleep 600 & echo $!; wait'", wait=False)
    while not (child := (await client("SandboxStdout", container_id=box, pid=parent.pid)).stdout.strip()):
        await asyncio.sleep(0.01)
    assert (await client("SandboxKill", container_id=box, pid=parent.pid)).ok
    state = f"sh -c 'grep State /proc/{child}/status || true'"
    told = (await client.exec(box, state)).stdout
    alive = bool(told) and "Z" not in told
    assert alive != tree
    await client.exec(box, f"sh -c 'kill -9 {child}'")


@pytest.mark.parametrize("waits", [False, True], ids=["ends", "runs-on"])
async def test_a_command_whose_child_holds_its_output(gateway: Gateway, client: Client, box: str, waits: bool) -> None:
    gateway.conduct.profile, gateway.conduct.inline_wait = Profile(waits_for_output=waits), 0.3 if waits else 30.0
    answer = await client.exec(box, "sh -c 'sleep 600 & echo $!'")
    assert answer.done != waits
    said = answer.stdout or (await client("SandboxStdout", container_id=box, pid=answer.pid)).stdout
    status = await client("SandboxStatus", container_id=box, pid=answer.pid)
    assert status.exit_code == (RUNS if waits else 0)
    await client.exec(box, f"sh -c 'kill -9 {said.strip()}'")
    assert await client.ended(box, answer.pid) == 0


async def test_an_old_server_heeds_no_wait(gateway: Gateway, client: Client, box: str) -> None:
    gateway.conduct.profile = Profile(inline_wait=False)
    answer = await client.exec(box, "echo hi")
    assert (answer.done, answer.stdout) == (False, "")
    assert await client.ended(box, answer.pid) == 0
    assert (await client("SandboxStdout", container_id=box, pid=answer.pid)).stdout == "hi\n"


async def test_the_server_waits_only_so_long(gateway: Gateway, client: Client, box: str) -> None:
    gateway.conduct.inline_poll = 0.02
    assert (await client.exec(box, "true")).done
    gateway.conduct.inline_wait = 0.2
    answer = await client.exec(box, "sh -c 'sleep 0.5; exit 4'")
    assert (answer.ok, answer.done, answer.exit_code) == (True, False, 0)
    assert await client.ended(box, answer.pid) == 4


@pytest.mark.parametrize("given", [True, False], ids=["old", "new"])
async def test_the_token_in_a_box(gateway: Gateway, client: Client, given: bool) -> None:
    gateway.conduct.profile = Profile(token_in_box=given)
    told = (await client.exec(await client.box(), "printenv BETA9_TOKEN")).stdout.strip()
    assert told == (gateway.token if given else "")


# --- output ------------------------------------------------------------------------------------------------------

LIMIT = 1000


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("printf '\\377'", "invalid UTF-8"),
        (f"head -c {LIMIT + 1} /dev/zero", f"({LIMIT + 1} vs. {LIMIT})"),
    ],
    ids=["no-utf-8", "too-much"],
)
@pytest.mark.parametrize("wait", [True, False], ids=["inline", "asked-for"])
async def test_output_that_cannot_be_told_is_lost(
    gateway: Gateway, client: Client, box: str, script: str, said: str, wait: bool
) -> None:
    gateway.conduct.agent_message = LIMIT
    answer = await client.exec(box, f'sh -c "{script}"', wait=wait)
    pid = (await client("SandboxListProcesses", container_id=box)).processes[-1].pid
    if not wait:
        await client.ended(box, pid)
        answer = await client("SandboxStdout", container_id=box, pid=pid)
    assert not answer.ok
    assert said in answer.error_msg
    rest = await client("SandboxStdout", container_id=box, pid=pid)
    assert (rest.ok, rest.stdout) == (True, "")


async def test_a_character_is_lost_where_it_is_split(client: Client, box: str) -> None:
    pid = (await client.exec(box, """sh -c "printf 'a\\303'; read x; printf '\\251b'" """, wait=False)).pid
    # Its stdin is empty: read fails at once. What counts is what has come when it is asked for.
    await client.ended(box, pid)
    assert (await client("SandboxStdout", container_id=box, pid=pid)).stdout == "a\u00e9b"
    await client.exec(box, "mkfifo go")
    pid = (await client.exec(box, """sh -c "printf 'a\\303'; read x < go; printf '\\251b'" """, wait=False)).pid
    while not (said := await client("SandboxStdout", container_id=box, pid=pid)).error_msg:
        assert said.stdout == ""
    assert "invalid UTF-8" in said.error_msg
    await client.exec(box, "sh -c 'echo > go'")
    await client.ended(box, pid)
    assert "invalid UTF-8" in (await client("SandboxStdout", container_id=box, pid=pid)).error_msg


async def test_output_is_told_once(client: Client, box: str) -> None:
    await client.exec(box, "mkfifo go")
    pid = (await client.exec(box, "sh -c 'echo one; echo err >&2; read x < go; echo two'", wait=False)).pid
    while not (said := (await client("SandboxStdout", container_id=box, pid=pid)).stdout):
        pass
    assert said == "one\n"
    while not (said := (await client("SandboxStderr", container_id=box, pid=pid)).stderr):
        pass
    assert said == "err\n"
    assert (await client("SandboxStdout", container_id=box, pid=pid)).stdout == ""
    await client.exec(box, "sh -c 'echo > go'")
    await client.ended(box, pid)
    assert (await client("SandboxStdout", container_id=box, pid=pid)).stdout == "two\n"


async def test_output_that_nobody_takes_fills_the_box(client: Client) -> None:
    made = await client.box(memory=64)
    await client.exec(made, "yes", wait=False)
    while (status := await client("SandboxStatus", container_id=made)).status != "exited":
        await asyncio.sleep(0.02)
    assert status.exit_code == OUT_OF_MEMORY


# --- files -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ranged", [True, False], ids=["new", "old"])
async def test_parts_of_files(gateway: Gateway, client: Client, box: str, ranged: bool) -> None:
    gateway.conduct.profile = replace(Profile(), ranged_files=ranged)
    for offset, data in ((0, b"abc"), (3, b"def")):
        fields: dict[str, Any] = {"container_path": "file", "data": data, "offset": offset, "mode": 0o644}
        assert (await client("SandboxUploadFile", container_id=box, **fields)).ok
    part = await client("SandboxDownloadFile", container_id=box, container_path="file", offset=2, length=3)
    assert part.data == (b"cde" if ranged else b"def")


@pytest.mark.parametrize(
    ("moved", "mode", "new", "old"),
    [(True, 0o666, "666", "666"), (False, 0o666, "644", "755"), (True, 644, "1204", "1204")],
    ids=["moved", "in-place", "decimal"],
)
async def test_modes_of_uploads(
    gateway: Gateway, client: Client, box: str, moved: bool, mode: int, new: str, old: str
) -> None:
    gateway.conduct.profile = Profile(moves_uploads=moved)
    await client.exec(box, "sh -c 'touch old; chmod 755 old'")
    for name in ("new", "old"):
        await client("SandboxUploadFile", container_id=box, container_path=name, data=b"x", mode=mode)
    assert (await client.exec(box, "stat -c %a new old")).stdout.split() == [new, old]


async def test_a_file_above_a_message(gateway: Gateway, client: Client, box: str) -> None:
    size = gateway.conduct.message + MiB
    await client.exec(box, f"truncate -s {size} big")
    whole = await client("SandboxDownloadFile", container_id=box, container_path="big")
    assert "ResourceExhausted" in whole.error_msg
    part = await client("SandboxDownloadFile", container_id=box, container_path="big", length=4 * MiB)
    assert len(part.data) == 4 * MiB
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await client("SandboxUploadFile", container_id=box, container_path="big", data=bytes(size))
    assert caught.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED


@pytest.mark.parametrize("name", PROFILES)
async def test_each_version_runs_a_command_and_keeps_a_file(gateway: Gateway, client: Client, name: str) -> None:
    gateway.conduct.profile = PROFILES[name]
    made = await client.box()
    await client("SandboxUploadFile", container_id=made, container_path="a/file", data=b"\0\xff", mode=0o600)
    answer = await client.exec(made, "wc -c a/file")
    assert await client.ended(made, answer.pid) == 0
    said = answer.stdout or (await client("SandboxStdout", container_id=made, pid=answer.pid)).stdout
    assert said == "2 a/file\n"
    assert (await client("SandboxDownloadFile", container_id=made, container_path="a/file")).data == b"\0\xff"
