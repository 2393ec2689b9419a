"""Shared by all tests: nothing asks the network, and boxes are made by one fixture that also destroys them."""

from __future__ import annotations

import os
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_DATASETS_OFFLINE"] = "1"
os.environ["TIKTOKEN_CACHE_DIR"] = os.environ.get("TIKTOKEN_CACHE_DIR", "/nonexistent")  # absent tables fail at once
os.environ["UV_OFFLINE"] = "1"
os.environ["PIP_NO_INDEX"] = "1"
if (worker := os.environ.get("PYTEST_XDIST_WORKER")) and f"tests-{worker}-" not in tempfile.gettempdir():
    # Tests look at what is left in there: one for each worker, however often this is imported.
    tempfile.tempdir = os.environ["TMPDIR"] = tempfile.mkdtemp(prefix=f"tests-{worker}-")
    os.chmod(tempfile.tempdir, 0o755)

import atexit
import json
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from codeenv.sandbox import make_provider
from codeenv.sandbox.api import ExportTooLarge, Probe, Sandbox, SandboxProvider, SandboxSpec

os.environ["CODEENV_STATE_DIR"] = tempfile.mkdtemp(prefix="state-")
atexit.register(shutil.rmtree, os.environ["CODEENV_STATE_DIR"], ignore_errors=True)

pytest_plugins = ["codeenv.sandbox.conformance.plugin"]
ROOT = Path(__file__).parents[1]
BACKENDS = ("bubblewrap", "unsafe-subprocess")
MakeBox = Callable[..., Awaitable[Sandbox]]


@pytest.fixture(scope="session")
def anyio_backend() -> Any:
    return "asyncio"


@lru_cache
def probe(name: str) -> Probe:
    return make_provider(name).probe()


@lru_cache
def beam_account() -> dict[str, Any]:
    """Of a gateway for tests in a process of its own, which ends with us."""
    command = [sys.executable, "-m", "tests.beam_gateway"]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    atexit.register(process.wait, 30)
    atexit.register(process.stdin.close)
    atexit.register(process.stdout.close)
    return json.loads(process.stdout.readline())


def provider_or_skip(name: str) -> SandboxProvider:
    if name == "beam":
        provider_or_skip("bubblewrap")
        return make_provider(name, **beam_account())
    if not probe(name).available:
        pytest.skip(f"{name} does not work on this host: {probe(name).error}")
    return make_provider(name)


MAIN_ROAD = {"test_episode", "test_shell", "test_tools"}
"""Modules whose every test that names a sandbox runs on both backends that isolate."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    module = metafunc.module.__name__.rpartition(".")[2]
    if "provider" in metafunc.fixturenames and module in MAIN_ROAD:
        metafunc.parametrize("provider", ["bubblewrap", "beam"], indirect=True)


@pytest.fixture
def provider(request: pytest.FixtureRequest) -> SandboxProvider:
    """A real, isolating backend: the embedded default, or the one that a test is parametrised with."""
    return provider_or_skip(getattr(request, "param", "bubblewrap"))


@pytest.fixture(params=BACKENDS)
def any_provider(request: pytest.FixtureRequest) -> SandboxProvider:
    """Each local backend in turn: for what the port promises of all of them."""
    return provider_or_skip(request.param)


@pytest.fixture
async def make_box(provider: SandboxProvider) -> AsyncIterator[MakeBox]:
    """`await make_box(memory_mb=64, ...)`: a box of that spec, destroyed after the test."""
    async with AsyncExitStack() as stack:

        async def make(**spec: Any) -> Sandbox:
            return await stack.enter_async_context(provider.create(SandboxSpec(**spec)))

        yield make


# A new box for each test would be a third of the time that the tests take: the isolating backend's `box` and `any_box`
# are a module's, cleared after each test. A module that uses them cannot run tests on another event loop. What needs a
# box of its own or may break it takes `make_box` or `any_provider`.


@pytest.fixture(scope="module")
async def lasting_box(anyio_backend: Any) -> AsyncIterator[Sandbox]:
    async with provider_or_skip("bubblewrap").create(SandboxSpec()) as sandbox:
        yield sandbox


@pytest.fixture
async def box(lasting_box: Sandbox) -> AsyncIterator[Sandbox]:
    """The real, isolating backend's box."""
    yield lasting_box
    await clear(lasting_box)


@pytest.fixture
async def any_box(any_provider: SandboxProvider, lasting_box: Sandbox) -> AsyncIterator[Sandbox]:
    """A box of each local backend in turn. Nothing is ever cleared by command in the one that isolates nothing."""
    if any_provider.name == "bubblewrap":
        yield lasting_box
        await clear(lasting_box)
    else:
        async with any_provider.create(SandboxSpec()) as sandbox:
            yield sandbox


async def clear(sandbox: Sandbox) -> None:
    """Make it like new: no process, no file."""
    assert sandbox.workdir == "/workspace"
    with suppress(ExportTooLarge, OSError):
        await sandbox.export("/tmp/home", stop_processes=True)
    script = """chmod -R u+rwX /workspace; find /workspace -mindepth 1 -delete
        find /tmp /dev/shm -mindepth 1 ! -path /tmp/home -delete"""
    result = await sandbox.exec(script, cwd="/")
    assert result.exit_code == 0, result
