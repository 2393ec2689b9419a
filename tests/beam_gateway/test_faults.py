"""Each fault of the gateway, and each way its server can behave, does what it says, seen through plain gRPC."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import grpc.aio
import pytest

from codeenv.sandbox.api import SandboxSpec
from codeenv.sandbox.conformance.support import marker, on_host
from tests.beam_gateway.client import Client
from tests.beam_gateway.container import LOST, OUT_OF_MEMORY, STOPPED_BY_SCHEDULER, STOPPED_BY_USER
from tests.beam_gateway.faults import Fault
from tests.beam_gateway.server import Gateway

pytestmark = pytest.mark.anyio
UNAVAILABLE = grpc.StatusCode.UNAVAILABLE
LATE = grpc.StatusCode.DEADLINE_EXCEEDED
AFTER = {"after": True}


async def fails(call: Any) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return caught.value


async def lines(client: Client, box: str) -> int:
    """How often `ECHO` has run in the box."""
    return int((await client.exec(box, "sh -c 'cat ran | wc -l'")).stdout)


ECHO = "sh -c 'echo >> ran'"


# --- faults ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "code", "ran"),
    [
        ({"status": UNAVAILABLE, "details": "no"}, UNAVAILABLE, 0),
        ({"status": UNAVAILABLE, **AFTER}, UNAVAILABLE, 1),
        ({"status": grpc.StatusCode.UNIMPLEMENTED}, grpc.StatusCode.UNIMPLEMENTED, 0),
        ({"hang": True}, LATE, 0),
        ({"hang": True, **AFTER}, LATE, 1),
        ({"copies": 2, "status": UNAVAILABLE, **AFTER}, UNAVAILABLE, 2),
        ({"delay": 600.0}, LATE, 0),
        ({"delay": 600.0, **AFTER}, LATE, 1),
        ({"delay": 0.6}, LATE, 1),
    ],
    ids=[
        "before",
        "after",
        "unimplemented",
        "hang-before",
        "hang-after",
        "twice-and-lost",
        "slow-before",
        "slow-after",
        "late",
    ],
)
async def test_a_call_that_gets_no_answer(
    gateway: Gateway, client: Client, box: str, fields: dict[str, Any], code: grpc.StatusCode, ran: int
) -> None:
    fault = gateway.faults.add("SandboxExec", **fields)
    error = await fails(client.exec(box, ECHO, timeout=0.5 if code == LATE else 30.0))
    assert error.code() == code
    while await lines(client, box) < ran:
        await asyncio.sleep(0.02)
    assert await lines(client, box) == ran
    assert fault.hits == 1


@pytest.mark.parametrize(
    "fields", [{"copies": 2}, {"copies": 2, "at_once": True}, {"again": 0.1}], ids=["in-turn", "at-once", "later"]
)
async def test_a_request_is_delivered_twice(gateway: Gateway, client: Client, box: str, fields: dict[str, Any]) -> None:
    gateway.faults.add("SandboxExec", **fields)
    assert (await client.exec(box, ECHO)).done
    while await lines(client, box) < 2:
        await asyncio.sleep(0.02)


async def test_copies_at_once_run_beside_each_other(gateway: Gateway, client: Client, box: str) -> None:
    await client.exec(box, "mkfifo pipe")
    gateway.faults.add("SandboxExec", copies=2, at_once=True)
    # Neither ends without the other.
    assert (await client.exec(box, "sh -c 'if mkdir first; then echo met > pipe; else cat pipe; fi'")).done


async def test_an_answer_without_an_effect(gateway: Gateway, client: Client, box: str) -> None:
    gateway.faults.add("SandboxExec", answer={"ok": False, "error_msg": "Failed to execute command"})
    assert (await client.exec(box, ECHO)).error_msg == "Failed to execute command"
    assert await lines(client, box) == 0


async def test_a_fault_goes_off_on_the_calls_that_it_names(gateway: Gateway, client: Client, box: str) -> None:
    fault = Fault("*", status=UNAVAILABLE, times=2, skip=1, when=lambda request: getattr(request, "wait", False))
    gateway.faults.add(fault)
    outcomes: list[bool] = []
    for _ in range(4):
        await client("SandboxStatus", container_id=box)
        try:
            outcomes.append((await client.exec(box, "true")).ok)
        except grpc.aio.AioRpcError:
            outcomes.append(False)
    assert outcomes == [True, False, False, True]
    gateway.faults.remove(fault)


@pytest.mark.parametrize("after", [False, True], ids=["lost-before", "lost-after"])
async def test_a_create_whose_answer_is_lost(gateway: Gateway, client: Client, after: bool) -> None:
    stub = await client.stub()
    gateway.faults.add("CreatePod", status=UNAVAILABLE, after=after)
    assert (await fails(client("CreatePod", stub_id=stub))).code() == UNAVAILABLE
    listed = [each for each in (await client("ListContainers")).containers if each.stub_id == stub]
    assert len(listed) == int(after)


async def test_a_caller_that_leaves_takes_nothing_back(gateway: Gateway, client: Client, box: str) -> None:
    left = f"sleep {marker()}"
    assert (await fails(client.exec(box, left, timeout=0.3))).code() == LATE
    while not (
        found := [
            each
            for each in (await client("SandboxListProcesses", container_id=box)).processes
            if each.cmd.endswith(left)
        ]
    ):
        await asyncio.sleep(0.02)
    assert found[0].running
    assert (await client("SandboxKill", container_id=box, pid=found[0].pid)).ok


async def test_a_caller_that_leaves_before_a_box_is_ready_has_done_nothing(gateway: Gateway, client: Client) -> None:
    gateway.conduct.readiness, gateway.conduct.manager_wait = 0.5, 30.0
    made = (await client("CreatePod", stub_id=await client.stub())).container_id
    assert (await fails(client.exec(made, ECHO, timeout=0.2))).code() == LATE
    assert (await client.exec(made, "ls")).stdout == ""
    (only,) = (await client("SandboxListProcesses", container_id=made)).processes
    assert only.cmd.endswith("ls")


@pytest.mark.parametrize(
    ("after", "code", "told"),
    [(False, OUT_OF_MEMORY, True), (True, STOPPED_BY_SCHEDULER, True), (True, LOST, False)],
    ids=["out-of-memory-before", "ttl-after", "lost-after"],
)
async def test_a_box_that_dies_under_a_call(
    gateway: Gateway, client: Client, after: bool, code: int, told: bool
) -> None:
    doomed = await client.box()
    gateway.faults.add("SandboxExec", die=code, after=after)
    answer = await client.exec(doomed, "true")
    assert answer.ok == after
    status = await client("SandboxStatus", container_id=doomed)
    if told:
        assert (status.ok, status.status, status.exit_code) == (True, "exited", code)
    else:
        assert (status.ok, status.error_msg) == (False, "Failed to get sandbox status")


async def test_a_box_that_dies_as_it_is_made(gateway: Gateway, client: Client) -> None:
    gateway.faults.add("CreatePod", die=OUT_OF_MEMORY, after=True)
    made = await client("CreatePod", stub_id=await client.stub())
    assert made.ok
    assert (await client("SandboxStatus", container_id=made.container_id)).exit_code == OUT_OF_MEMORY


async def test_what_is_said_of_a_box_that_is_gone(gateway: Gateway, client: Client) -> None:
    gone = await client.box()
    await gateway.kill(gone, STOPPED_BY_USER)
    gateway.conduct.connect_ready = 0.1
    unreachable = "Failed to connect to sandbox"
    assert (await client.exec(gone, "true")).error_msg == unreachable
    for rpc in ("SandboxStdout", "SandboxKill", "SandboxListFiles", "SandboxUpdateTTL", "SandboxConnect"):
        assert (await client(rpc, container_id=gone)).error_msg == unreachable, rpc
    assert (await client("StopContainer", container_id=gone)).error_msg == f"Container not found: {gone}"
    assert gone not in [each.container_id for each in (await client("ListContainers")).containers]


async def test_exit_codes_are_kept_for_a_while(gateway: Gateway, client: Client) -> None:
    gone = await client.box()
    await gateway.kill(gone, STOPPED_BY_USER)
    assert (await client("SandboxStatus", container_id=gone)).exit_code == STOPPED_BY_USER
    gateway.conduct.exit_codes_kept = 0.0
    while (await client("SandboxStatus", container_id=gone)).ok:
        await asyncio.sleep(0.02)


# --- the server --------------------------------------------------------------------------------------------------


async def test_a_restart_keeps_boxes_and_cuts_calls(gateway: Gateway, client: Client, box: str) -> None:
    port = gateway.port
    running = await client.exec(box, "sleep 600", wait=False)
    cut = asyncio.create_task(client.exec(box, "sleep 5"))
    await asyncio.sleep(0.2)
    await gateway.restart(down=0.1)
    assert (await fails(cut)).code() == UNAVAILABLE
    assert gateway.port == port
    await asyncio.wait_for(client.channel.channel_ready(), 30)
    assert (await client("SandboxStatus", container_id=box, pid=running.pid)).status == "running"
    assert (await client("SandboxKill", container_id=box, pid=running.pid)).ok


async def test_a_goaway_lets_calls_end(gateway: Gateway, client: Client, box: str) -> None:
    answered = asyncio.create_task(client.exec(box, "sh -c 'sleep 0.4; echo said'"))
    await asyncio.sleep(0.2)
    await gateway.restart(grace=5.0)
    assert (await answered).stdout == "said\n"


async def test_old_connections_are_told_to_go_away(gateway: Gateway) -> None:
    async with Gateway(provider=gateway.provider, connection_age=0.1) as short, Client(short) as client:
        states: list[grpc.ChannelConnectivity] = []

        async def watch() -> None:
            state = client.channel.get_state()
            while True:
                states.append(state)
                await client.channel.wait_for_state_change(state)
                state = client.channel.get_state()

        watching = asyncio.create_task(watch())
        for _ in range(20):
            assert (await client("ListContainers")).ok
            await asyncio.sleep(0.05)
        watching.cancel()
        assert states.count(grpc.ChannelConnectivity.READY) > 1


async def test_a_revoked_token(gateway: Gateway, client: Client, box: str) -> None:
    old = gateway.token
    gateway.revoke()
    error = await fails(client("ListContainers", token=old))
    assert (error.code(), error.details()) == (grpc.StatusCode.UNAUTHENTICATED, "invalid or missing token")
    assert (await client("Authorize", token=old)).error_msg == "Invalid token"
    assert (await client.exec(box, "true")).done


async def test_calls_are_counted(gateway: Gateway, client: Client, box: str) -> None:
    before = gateway.calls.copy()
    await client.exec(box, "true")
    assert gateway.calls - before == {"SandboxExec": 1}


async def test_a_gateway_that_ends_leaves_nothing(gateway: Gateway) -> None:
    seconds = marker()
    async with Gateway(provider=gateway.provider) as other, Client(other) as client:
        await client.exec(await client.box(), f"setsid sleep {seconds}", wait=False)
        while not on_host(seconds):
            await asyncio.sleep(0.01)
    assert on_host(seconds) == []


# --- creation ----------------------------------------------------------------------------------------------------


async def test_a_quota(gateway: Gateway, client: Client) -> None:
    stub = await client.stub()
    gateway.conduct.quota = len(gateway.active()) + 1
    first = await client("CreatePod", stub_id=stub)
    refused = await client("CreatePod", stub_id=stub)
    said = "concurrency_limit_reached: cpu quota exceeded"
    assert (refused.ok, refused.container_id, refused.error_msg) == (False, "", said)
    assert (await client("StopContainer", container_id=first.container_id)).ok
    while not (await client("CreatePod", stub_id=stub)).ok:
        await asyncio.sleep(0.02)


async def test_a_create_answers_before_the_box_is_ready(gateway: Gateway, client: Client) -> None:
    conduct, stub, never = gateway.conduct, await client.stub(), 3600.0
    conduct.scheduling = never
    pending = (await client("CreatePod", stub_id=stub)).container_id
    assert (await client("SandboxStatus", container_id=pending)).status == "pending"
    assert (await client.exec(pending, "true")).error_msg == "Failed to connect to sandbox"
    conduct.scheduling, conduct.readiness = 0.0, never
    unready = (await client("CreatePod", stub_id=stub)).container_id
    while gateway.containers[unready].status == "PENDING":
        await asyncio.sleep(0.02)
    assert (await client("SandboxStatus", container_id=unready)).status == "pending"
    assert (await client.exec(unready, "true")).error_msg == "Process manager not ready within timeout"
    asked = await client("SandboxStatus", container_id=unready, pid=1)
    assert asked.error_msg == "Sandbox process manager is not ready"
    conduct.scheduling = conduct.readiness = 0.2
    conduct.exec_connect = conduct.manager_wait = 30.0
    slow = (await client("CreatePod", stub_id=stub)).container_id
    assert (await client.exec(slow, "true")).done
    statuses = {each.container_id: each.status for each in (await client("ListContainers")).containers}
    assert [statuses[each] for each in (pending, unready, slow)] == ["PENDING", "RUNNING", "RUNNING"]


async def test_only_so_many_start_at_once(gateway: Gateway, client: Client) -> None:
    gateway.conduct.starting_at_once, gateway.conduct.readiness = 1, 3600.0
    stub = await client.stub()
    first, second, third = [(await client("CreatePod", stub_id=stub)).container_id for _ in range(3)]

    async def starts(box: str) -> None:
        while gateway.containers[box].status == "PENDING":
            await asyncio.sleep(0.02)

    await starts(first)
    await asyncio.sleep(0.2)
    assert gateway.containers[second].status == gateway.containers[third].status == "PENDING"
    await gateway.kill(first, STOPPED_BY_USER)
    gateway.conduct.readiness = 0.0
    await starts(second)
    await gateway.kill(second, STOPPED_BY_USER)
    await starts(third)


@pytest.mark.parametrize(
    ("conduct", "code"), [({"start_fails": True}, 1), ({"images_exist": False}, 555)], ids=["start", "no-image"]
)
async def test_a_box_that_does_not_start(gateway: Gateway, client: Client, conduct: dict[str, Any], code: int) -> None:
    for name, value in conduct.items():
        setattr(gateway.conduct, name, value)
    made = await client("CreatePod", stub_id=await client.stub())
    while (status := await client("SandboxStatus", container_id=made.container_id)).status != "exited":
        await asyncio.sleep(0.02)
    assert status.exit_code == code


async def test_a_stub_that_cannot_be(client: Client) -> None:
    answer = await client("GetOrCreateStub", secrets=[{"name": "NONE"}])
    assert (answer.ok, answer.err_msg) == (False, 'Secret "NONE" does not exist in this workspace.')
    assert not (await client("CreatePod", stub_id="none")).ok


async def test_images_are_built(gateway: Gateway, client: Client) -> None:
    gateway.conduct.images_exist = False
    wanted: dict[str, Any] = {"python_version": "python3.11", "env_vars": ["FROM=image"]}
    assert not (await client("VerifyImageBuild", **wanted)).exists
    last = (await client.build(**wanted))[-1]
    assert (last.done, last.success) == (True, True)
    there = await client("VerifyImageBuild", **wanted)
    assert (there.exists, there.image_id) == (True, last.image_id)
    assert (await client("VerifyImageBuild", image_id=last.image_id)).exists
    made = await client.box(image_id=last.image_id)
    assert (await client.exec(made, "printenv FROM")).stdout == "image\n"


async def test_builds_fail(gateway: Gateway, client: Client) -> None:
    gateway.conduct.build_fails = "no such package"
    last = (await client.build(python_packages=["nonesuch"]))[-1]
    assert (last.done, last.success, last.msg) == (True, False, "no such package")
    gateway.faults.add("BuildImage", status=UNAVAILABLE, after=True)
    assert (await fails(client.build())).code() == UNAVAILABLE


# --- time to live ------------------------------------------------------------------------------------------------


async def test_the_time_to_live_ends_a_box(gateway: Gateway, client: Client) -> None:
    seconds = marker()
    doomed = await client.box()
    await client.exec(doomed, f"sleep {seconds}", wait=False)
    assert (await client("SandboxUpdateTTL", container_id=doomed, ttl=1)).ok
    while (status := await client("SandboxStatus", container_id=doomed)).status != "exited":
        await client.exec(doomed, "true")  # which prolongs nothing
    assert status.exit_code == STOPPED_BY_SCHEDULER
    assert on_host(seconds) == []


@pytest.mark.parametrize(("asked", "given"), [(3, "10"), (60, "60"), (-1, "-1")], ids=["short", "as-asked", "for-ever"])
async def test_the_time_to_live_of_a_create(client: Client, asked: int, given: str) -> None:
    made = await client.box(keep_warm_seconds=asked)
    assert (await client.exec(made, "printenv KEEP_WARM_SECONDS")).stdout.strip() == given


async def test_a_time_to_live_of_nothing_is_for_ever(gateway: Gateway, client: Client) -> None:
    made = await client.box(keep_warm_seconds=10)
    assert (await client("SandboxUpdateTTL", container_id=made, ttl=1)).ok
    assert (await client("SandboxUpdateTTL", container_id=made, ttl=0)).ok
    await asyncio.sleep(1.2)
    assert (await client.exec(made, "true")).done


async def test_a_stop_takes_its_time(gateway: Gateway, client: Client) -> None:
    gateway.conduct.stopping = 0.3
    made = await client.box()
    assert (await client("StopContainer", container_id=made)).ok
    await asyncio.sleep(0)
    assert (await client("SandboxStatus", container_id=made)).status == "stopping"
    assert (await client.exec(made, "true")).error_msg == "Container not found"
    assert [each.status for each in (await client("ListContainers")).containers if each.container_id == made] == [
        "STOPPING"
    ]
    while (status := await client("SandboxStatus", container_id=made)).status == "stopping":
        await asyncio.sleep(0.02)
    assert (status.status, status.exit_code) == ("exited", STOPPED_BY_USER)


# --- boxes -------------------------------------------------------------------------------------------------------


async def test_a_directory_that_does_not_exist(gateway: Gateway, client: Client, box: str) -> None:
    assert (await client.exec(box, "true", cwd="/nope")).error_msg == "chdir /nope: no such file or directory"
    gateway.spec = SandboxSpec(workdir="/app")
    try:
        other = await client.box()
        assert "no such file" in (await client.exec(other, "true", cwd="/workspace")).error_msg
        assert (await client.exec(other, "pwd")).stdout == "/app\n"
    finally:
        gateway.spec = SandboxSpec()


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("nonesuch", 'exec: "nonesuch": executable file not found in $PATH'),
        ("/nonesuch", "fork/exec /nonesuch: no such file or directory"),
        ("/tmp", "fork/exec /tmp: permission denied"),
        ("sh -c 'open", "No closing quotation"),
    ],
    ids=["not-on-path", "no-file", "not-a-program", "quotes"],
)
async def test_a_command_that_cannot_be_run(client: Client, box: str, command: str, said: str) -> None:
    answer = await client.exec(box, command)
    assert (answer.ok, answer.error_msg) == (False, said)


async def test_a_command_that_kills_all_it_can(client: Client) -> None:
    made = await client.box()
    running = await client.exec(made, "sleep 600", wait=False)
    await client.exec(made, "sh -c 'kill -9 -1'")
    while not (again := await client.exec(made, "echo alive")).ok:
        await asyncio.sleep(0.02)
    assert again.stdout == "alive\n"
    assert (await client("SandboxStatus", container_id=made, pid=running.pid)).exit_code == 137


async def test_an_image_of_a_box(client: Client) -> None:
    first = await client.box(env=["COLOUR=blue"])
    await client.exec(first, "sh -c 'echo kept > file; mkdir /tmp/deep; echo too > /tmp/deep/er'")
    image = await client("SandboxCreateImageFromFilesystem", container_id=first, stub_id="some-stub")
    assert image.image_id.startswith("some-stub-")
    second = await client.box(image_id=image.image_id)
    told = await client.exec(second, "sh -c 'cat file /tmp/deep/er; printenv COLOUR'")
    assert told.stdout == "kept\ntoo\nblue\n"


async def test_secrets_and_variables(gateway: Gateway, client: Client) -> None:
    gateway.store.secrets["KEY"] = "hush"
    made = await client.box(secrets=[{"name": "KEY"}], env=["A=1", "B=2"])
    told = await client.exec(made, "printenv KEY A B", env={"B": "3"})
    assert told.stdout == "hush\n1\n3\n"


async def test_a_server_without_network_rules(client: Client, box: str) -> None:
    answer = await client("SandboxUpdateNetworkPermissions", container_id=box, block_network=True)
    assert not answer.ok
    assert not (await client("SandboxExposePort", container_id=box, port=80)).ok
    assert (await client("SandboxListUrls", container_id=box)).ok
