"""Turns on Beam: one command in each of 1, 64 and 256 boxes at a time, by the SDK's `.aio`, by the SDK in a thread for
each box, and by ours; then 500 turns at once, each in a box of its own, eight of them of 20 s. Against the gateway of
the tests in a process of its own, whose boxes are local ones and so take the cores that all of this runs on: once with
nothing in between, where those cores are what is measured, once as if it were 10 ms away, as a gateway is."""

from __future__ import annotations

import asyncio
import json
import resource
import statistics
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

import anyio
import grpc
from measure import options, report

from codeenv.sandbox import make_provider
from codeenv.sandbox.api import Sandbox, SandboxSpec
from codeenv.sandbox.beam.messages import message_class
from codeenv.sandbox.beam.sandbox import BeamSandbox
from codeenv.sandbox.beam.sdk import message_types

ROOT = Path(__file__).parents[1]
SPEC = SandboxSpec(memory_mb=1024, ttl_seconds=3000)
TURN = "true"
AT_ONCE = (1, 64, 256)
TURNS = {1: 60, 64: 384, 256: 768}
PLACES = {"here": {}, "10 ms away": {"way": 0.01, "inline_poll": 0.02}}
"""How far the gateway is, and how often it looks whether a command has ended: at once, or as Beam's does."""
LONG, LONG_SECONDS, SHORT, SHORT_SECONDS = 8, 20.0, 492, 0.5

Turn = Callable[[int, str], Awaitable[None]]


@asynccontextmanager
async def gateway(conduct: dict[str, float]) -> AsyncGenerator[dict[str, Any]]:
    command = [sys.executable, "-m", "tests.beam_gateway", "--conduct", json.dumps(conduct)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe) as process:  # noqa: ASYNC220
        assert process.stdin
        assert process.stdout
        yield json.loads(process.stdout.readline())
        process.stdin.close()


def sdk_of(place: dict[str, Any], boxes: list[BeamSandbox]) -> list[Any]:
    """The SDK's own view of the same boxes."""
    from beta9 import terminal
    from beta9.abstractions.base import set_channel
    from beta9.abstractions.sandbox import SandboxInstance
    from beta9.config import ConfigContext

    terminal._console.quiet = terminal._error_console.quiet = True
    set_channel(context=ConfigContext(token=place["token"], gateway_host=place["host"], gateway_port=place["port"]))
    return [SandboxInstance(stub_id="", container_id=box.container.id, ok=True) for box in boxes]


def rivals(place: dict[str, Any], boxes: list[BeamSandbox], pool: ThreadPoolExecutor) -> dict[str, Turn]:
    instances = sdk_of(place, boxes)

    async def ours(number: int, command: str) -> None:
        done = await boxes[number].exec(command)
        assert done.exit_code == 0, done

    async def aio(number: int, command: str) -> None:
        process = await instances[number].process.aio.exec("bash", "-c", command)
        assert await process.wait() == 0
        await process.stdout.read()
        await process.stderr.read()

    def threaded(number: int, command: str) -> None:
        process = instances[number].process.exec("bash", "-c", command)
        assert process.wait() == 0
        process.stdout.read()
        process.stderr.read()

    async def threads(number: int, command: str) -> None:
        await asyncio.get_running_loop().run_in_executor(pool, threaded, number, command)

    return {"the SDK's .aio": aio, "the SDK, a thread a box": threads, "ours": ours}


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def rate(turn: Turn, boxes: int, turns: int) -> tuple[float, float]:
    """Turns a second and our own CPU milliseconds a turn, the boxes each taking one turn after the other."""
    left = iter(range(turns))

    async def work(number: int) -> None:
        for _ in left:
            await turn(number, TURN)

    started, used = perf_counter(), cpu()
    async with anyio.create_task_group() as group:
        for number in range(boxes):
            group.start_soon(work, number)
    return turns / (perf_counter() - started), (cpu() - used) * 1000 / turns


async def mixed(turn: Turn) -> float:
    """The median seconds of a short turn while long ones go on, all asked for at once."""
    times: list[float] = []

    async def short(number: int) -> None:
        started = perf_counter()
        await turn(number, f"sleep {SHORT_SECONDS}")
        times.append(perf_counter() - started)

    async with anyio.create_task_group() as group:
        for number in range(LONG):
            group.start_soon(turn, number, f"sleep {LONG_SECONDS}")
        await anyio.sleep(0.2)
        for number in range(LONG, LONG + SHORT):
            group.start_soon(short, number)
    return statistics.median(times)


async def one_rpc(place: dict[str, Any], turns: int) -> float:
    """The floor: 64 RPCs at a time, each about a box that is not there: it costs the gateway the answer alone."""
    types = message_types("pod")
    request = message_class(types["PodSandboxStatusRequest"])
    answer = message_class(types["PodSandboxStatusResponse"])
    async with grpc.aio.insecure_channel(f"{place['host']}:{place['port']}") as channel:
        call = channel.unary_unary(
            "/pod.PodService/SandboxStatus",
            request_serializer=request.SerializeToString,
            response_deserializer=answer.FromString,
        )
        metadata = (("authorization", f"Bearer {place['token']}"),)

        async def turn(number: int, command: str) -> None:
            await call(request(container_id="none", pid=0), metadata=metadata)

        return (await rate(turn, 64, turns))[0]


async def main() -> None:
    arguments = options(__doc__ or "")
    rows: list[dict[str, object]] = []
    notes: list[str] = []
    for name, conduct in PLACES.items():
        await measure(name, conduct, arguments.rounds or 3, rows, notes)
    report("turns on a Beam gateway", rows, as_json=arguments.json, notes=notes)


async def measure(
    where: str, conduct: dict[str, float], rounds: int, rows: list[dict[str, object]], notes: list[str]
) -> None:
    async with AsyncExitStack() as stack:
        place = await stack.enter_async_context(gateway(conduct))
        provider = make_provider("beam", **place)
        await anyio.to_thread.run_sync(provider.check, SPEC)
        boxes: list[BeamSandbox] = []
        started = perf_counter()

        async def make() -> None:
            box: Sandbox = await stack.enter_async_context(provider.create(SPEC))
            assert isinstance(box, BeamSandbox)
            boxes.append(box)

        async with anyio.create_task_group() as group:
            for _ in range(LONG + SHORT):
                group.start_soon(make)
        notes.append(f"{where}: {len(boxes)} boxes made in {perf_counter() - started:.1f} s")
        pool = stack.enter_context(ThreadPoolExecutor(len(boxes)))
        turns = rivals(place, boxes, pool)
        for count in AT_ONCE:
            measured: dict[str, list[tuple[float, float]]] = {name: [] for name in turns}
            for _ in range(rounds):
                for name, turn in turns.items():
                    measured[name].append(await rate(turn, count, TURNS[count]))
            aio = statistics.median(speed for speed, _ in measured["the SDK's .aio"])
            for name, values in measured.items():
                speed = statistics.median(speed for speed, _ in values)
                used = statistics.median(used for _, used in values)
                rows.append(
                    {
                        "gateway": where, "boxes": count, "rival": name, "turns/s": speed, "CPU ms/turn": used,
                        "times .aio": speed / aio,
                    }
                )  # fmt: skip
        notes.append(f"{where}: an RPC that does nothing, 64 at a time: {await one_rpc(place, 2000):.0f} a second")
        for name, turn in turns.items():
            median = await mixed(turn)
            text = f"{LONG} turns of {LONG_SECONDS:g} s and {SHORT} of {SHORT_SECONDS} s, {name}"
            notes.append(f"{where}: {text}: {median:.2f} s a short one")


if __name__ == "__main__":
    anyio.run(main)
