"""The unmodified SDK passes its own calls against the gateway, so that the gateway is true to it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import provider_or_skip

os.environ["BETA9_NO_INPUT"] = "1"  # a missing setting fails and never asks

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def context() -> Iterator[Any]:
    """A gateway in a process of its own, as the SDK is told of it."""
    provider_or_skip("bubblewrap")
    hook = sys.excepthook
    from beta9 import terminal
    from beta9.abstractions.base import unset_channel
    from beta9.config import ConfigContext

    sys.excepthook = hook  # the SDK takes it
    terminal._console.quiet = terminal._error_console.quiet = True
    command = [sys.executable, "-m", "tests.beam_gateway", "--port", "0"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout and process.stdin
        place = json.loads(process.stdout.readline())
        yield ConfigContext(token=place["token"], gateway_host=place["host"], gateway_port=place["port"])
        unset_channel()
        process.stdin.close()
        assert process.wait(30) == 0


@pytest.fixture(scope="module")
def make(context: Any) -> Any:
    from beta9 import Image, Sandbox

    def make(**settings: Any) -> Any:
        settings = {"image": Image(python_version="python3.11"), "memory": 512, **settings}
        return Sandbox(context=context, **settings).create()

    return make


@pytest.fixture(scope="module")
def instance(make: Any) -> Iterator[Any]:
    with make(env={"COLOUR": "blue"}, keep_warm_seconds=120) as instance:
        yield instance


def test_create_says_which_box_it_is(instance: Any) -> None:
    assert instance.ok
    assert instance.container_id.startswith(f"sandbox-{instance.stub_id}-")
    assert instance.status()[0] == -1  # pending still, or running
    assert instance.poll() is None


def test_a_command_is_run_and_waited_for(instance: Any) -> None:
    process = instance.process.exec("sh", "-c", "echo out; echo err >&2; exit 3")
    assert process.wait(30) == 3
    assert (process.stdout.read(), process.stderr.read()) == ("out\n", "err\n")
    assert process.stdout.read() == ""
