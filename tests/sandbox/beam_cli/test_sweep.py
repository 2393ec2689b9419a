"""What a dead run left is found and ended; what a live one uses, and what is another's, is not touched."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from codeenv.sandbox import make_provider
from codeenv.sandbox.api import SandboxError, SandboxSpec
from codeenv.sandbox.beam import records, sweep
from codeenv.sandbox.beam.records import Run
from codeenv.sandbox.beam.sdk import Account
from tests.beam_gateway.client import Client
from tests.beam_gateway.server import Gateway

pytestmark = pytest.mark.anyio
RUN = """
import sys, anyio
from codeenv import get_provider, SandboxSpec
async def main():
    provider = get_provider("beam")
    async with provider.create(SandboxSpec()) as one, provider.create(SandboxSpec()) as two:
        print(one.container.id, two.container.id, flush=True)
        await anyio.sleep(600) if sys.argv[1] == "hang" else None
anyio.run(main)
"""


def account_of(gateway: Gateway) -> Account:
    return Account(gateway.host, gateway.port, gateway.token)


@asynccontextmanager
async def running(env: dict[str, str], how: str = "hang") -> AsyncIterator[tuple[Any, list[str]]]:
    """A process that has two boxes: it, and their ids."""
    async with await anyio.open_process([sys.executable, "-c", RUN, how], env=env, stderr=None) as process:
        try:
            assert process.stdout is not None
            said = b""
            while not said.endswith(b"\n"):
                said += await process.stdout.receive()
            yield process, said.decode().split()
        finally:
            if process.returncode is None:
                process.kill()


async def codeenv(*arguments: str, env: dict[str, str]) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "codeenv", *arguments]
    return await anyio.run_process(command, env=env, check=False, stdin=subprocess.DEVNULL)


async def test_boxes_of_a_killed_run_are_ended_and_no_others(
    gateway: Gateway, client: Client, somebody: dict[str, str], tmp_path: Path
) -> None:
    foreign = await client.box()
    async with running(somebody) as (dead, left), running(somebody) as (alive, used):
        dead.send_signal(signal.SIGKILL)
        await dead.wait()

        listed = await codeenv("sandboxes", "list", "--json", env=somebody)
        assert listed.returncode == 0, listed.stderr
        shown = {box["id"]: box for box in json.loads(listed.stdout)["sandboxes"]}
        assert {id: box["run_lives"] for id, box in shown.items()} == {
            **dict.fromkeys(left, False),
            **dict.fromkeys(used, True),
        }
        assert all(box["seconds"] < 120 and box["status"] == "running" for box in shown.values())
        assert {box["run_pid"] for box in shown.values()} == {dead.pid, alive.pid}

        swept = await codeenv("sandboxes", "sweep", "--backend", "beam", env=somebody)
        assert swept.returncode == 0, swept.stderr
        assert b"ended 2 of 2" in swept.stdout
        assert {container.id for container in gateway.active()} == {foreign, *used}
        assert len(list((tmp_path / "state" / "beam").glob("*"))) == 1  # the live run's

        every = await sweep.sweep(account_of(gateway), all_runs=True)
        assert {box.id for box in every if box.ended} == set(used)
        assert {container.id for container in gateway.active()} == {foreign}
        for output in (listed, swept):
            assert gateway.token.encode() not in output.stdout + output.stderr


async def test_a_run_that_ends_well_leaves_no_record(
    gateway: Gateway, somebody: dict[str, str], tmp_path: Path
) -> None:
    async with running(somebody, "end") as (process, _):
        assert await process.wait() == 0
    assert list((tmp_path / "state").rglob("*.json")) == []
    assert await sweep.sweep(account_of(gateway)) == []


async def test_a_record_is_there_before_a_box_is_and_has_no_token(
    gateway: Gateway, nobody: dict[str, str], tmp_path: Path
) -> None:
    fault = gateway.faults.add("CreatePod", delay=0.5)
    provider = make_provider("beam", host=gateway.host, port=gateway.port, token=gateway.token)
    async with anyio.create_task_group() as group:

        async def use() -> None:
            async with provider.create(SandboxSpec()):
                pass

        group.start_soon(use)
        while not fault.hits:
            await anyio.sleep(0.01)
        (path,) = (tmp_path / "state" / "beam").iterdir()
        text = path.read_text()
    assert set(Run.model_validate_json(text).stubs) <= set(gateway.store.stubs)
    assert gateway.token not in text
    assert json.loads(text)["gateway"] == f"{gateway.host}:{gateway.port}"


@pytest.mark.parametrize(
    ("changes", "lives"),
    [
        ({}, True),
        ({"pid": 2**22 + 1, "born": ""}, False),
        ({"born": "1"}, False),
        ({"boot": "an earlier start"}, False),
        ({"namespace": "pid:[1]"}, None),
        ({"host": "elsewhere"}, None),
        ({"host": "elsewhere", "boot": "another's"}, None),
    ],
    ids=["this-one", "no-such-pid", "pid-used-again", "rebooted", "another-container", "another-host", "and-boot"],
)
def test_whether_a_run_lives(changes: dict[str, Any], lives: bool | None) -> None:
    run = Run.of_this_process(Account("gateway.example", 443, "hush"))
    assert run.model_copy(update=changes).lives is lives


def test_a_zombie_is_dead() -> None:
    child = subprocess.Popen(["true"])
    while Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
        time.sleep(0.01)
    run = Run.of_this_process(Account("gateway.example", 443, "hush")).model_copy(update={"pid": child.pid})
    assert run.lives is False
    child.wait()


@pytest.mark.parametrize("run", ["elsewhere", "another-gateway", "another-account"])
async def test_records_that_say_nothing_of_this_account_are_left_alone(
    run: str, gateway: Gateway, client: Client, nobody: dict[str, str], tmp_path: Path
) -> None:
    """A run on another host may live; one on another gateway or another account is not seen here."""
    box = await client.box()
    (stub,) = {container.stub.id for container in gateway.active()}
    here = Run.of_this_process(account_of(gateway)).model_copy(update={"born": "1", "stubs": (stub,)})
    changes = {
        "elsewhere": {"host": "elsewhere"},
        "another-gateway": {"gateway": "gateway.example:443"},
        "another-account": {"account": "0" * 12, "stubs": ("of another account",)},
    }
    path = tmp_path / "state" / "beam" / "run.json"
    path.parent.mkdir(parents=True)
    path.write_text(here.model_copy(update=changes[run]).model_dump_json())
    assert await sweep.sweep(account_of(gateway)) == []
    assert [container.id for container in gateway.active()] == [box]
    assert path.exists()


async def test_what_cannot_be_ended_is_reported(
    gateway: Gateway, client: Client, nobody: dict[str, str], tmp_path: Path
) -> None:
    box = await client.box()
    (stub,) = {container.stub.id for container in gateway.active()}
    run = Run.of_this_process(account_of(gateway)).model_copy(update={"born": "1", "stubs": (stub,)})
    path = tmp_path / "state" / "beam" / "run.json"
    path.parent.mkdir(parents=True)
    path.write_text(run.model_dump_json())
    gateway.faults.add("StopContainer", answer={"ok": False, "error_msg": "not today"})
    (found,) = await sweep.sweep(account_of(gateway))
    assert (found.id, found.ended, found.error) == (box, False, "not today")
    gateway.faults.add("StopContainer", answer={"ok": True})
    (found,) = await sweep.sweep(account_of(gateway), seconds=0.2)
    assert (found.ended, found.error) == (False, "it is still there")
    assert path.exists()
    (found,) = await sweep.sweep(account_of(gateway))
    assert found.ended
    assert not path.exists()


async def test_a_state_directory_that_cannot_be_written_costs_no_box(
    gateway: Gateway, nobody: dict[str, str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("CODEENV_STATE_DIR", "/proc/nowhere")
    provider = make_provider("beam", host=gateway.host, port=gateway.port, token=gateway.token)
    async with provider.create(SandboxSpec()) as box:
        assert (await box.exec("echo ok")).stdout == b"ok\n"
    assert "cannot be noted" in caplog.text
    assert list(records.all_runs()) == []


async def test_a_gateway_that_is_not_there_is_one_clear_line(nobody: dict[str, str]) -> None:
    with pytest.raises(SandboxError, match=r"127\.0\.0\.1:1 gave no answer to ListContainers"):
        await sweep.boxes(Account("127.0.0.1", 1, "hush"))
    env = {**nobody, "BEAM_TOKEN": "hush", "GATEWAY_HOST": "127.0.0.1", "GATEWAY_PORT": "1"}
    done = await codeenv("sandboxes", "list", env=env)
    assert done.returncode == 1
    assert b"gave no answer" in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["list", "--backend", "bubblewrap"], 2, b"valid: beam"),
        (["list"], 1, b"not set up"),
        (["sweep", "--sandbox-setting", "token=hush"], 2, b"would be saved"),
    ],
    ids=["backend", "no-account", "token"],
)
async def test_wrong_usage(arguments: list[str], code: int, says: bytes, nobody: dict[str, str]) -> None:
    done = await codeenv("sandboxes", *arguments, env=nobody)
    assert (done.returncode, done.stdout) == (code, b"")
    assert says in done.stderr
    assert b"hush" not in done.stderr
