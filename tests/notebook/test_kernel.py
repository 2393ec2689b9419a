"""Episodes in a real kernel, whose boxes are watched from outside."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

from codeenv.sandbox.conformance.support import on_host
from tests.conftest import provider_or_skip

SECONDS = 60
OPEN = """\
import codeenv
ep = await codeenv.open_episode("starter/tip-jar-payout")
_ = await ep.bash("(setsid sleep {} &)")"""


class Kernel:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.manager = KernelManager()
        self.manager.start_kernel(cwd=str(folder), env={**os.environ, "TMPDIR": str(folder)})
        self.client = self._client()

    def _client(self) -> BlockingKernelClient:
        client: BlockingKernelClient = self.manager.client()
        client.start_channels()
        client.wait_for_ready(timeout=SECONDS)
        return client

    def run(self, code: str) -> str:
        """What the cell prints and gives, or the name of its error."""
        shown: list[str] = []

        def take(message: dict[str, Any]) -> None:
            content = message["content"]
            printed = content["text"] if content.get("name") == "stdout" else ""
            shown.append(printed or content.get("data", {}).get("text/plain", ""))

        reply = self.client.execute_interactive(code, output_hook=take, timeout=SECONDS)["content"]
        return "".join(shown) if reply["status"] == "ok" else reply["ename"]

    def interrupted(self, code: str, when: Callable[[], object]) -> str:
        """The error of a cell that is interrupted."""
        self.client.execute(code)
        wait(when)
        self.manager.interrupt_kernel()
        return self.client.get_shell_msg(timeout=SECONDS)["content"]["ename"]

    def restart(self) -> None:
        self.client.stop_channels()
        self.manager.restart_kernel(now=False)
        self.client = self._client()

    def stop(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


def wait(until: Callable[[], object]) -> None:
    deadline = time.monotonic() + SECONDS
    while not until():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    provider_or_skip("bubblewrap")
    kernel = Kernel(tmp_path_factory.mktemp("kernel"))
    yield kernel
    kernel.stop()


def test_a_cell_that_is_interrupted_leaves_a_usable_episode(kernel: Kernel) -> None:
    assert kernel.run(OPEN.format(988101)) == ""
    assert kernel.run("_ = await ep.bash('cd /tmp')") == ""
    assert kernel.interrupted("await ep.bash('sleep 988102')", lambda: on_host("988102")) == "CancelledError"
    wait(lambda: not on_host("988102"))
    assert kernel.run("print((await ep.bash('pwd')).text)") == "/tmp\n"
    assert kernel.run("[turn.error for turn in ep.recording.turns]") == "['', '', 'interrupted', '']"
    assert len(on_host("988101")) == 1


def test_a_cell_that_blocks_its_loop_holds_up_no_episode(kernel: Kernel) -> None:
    assert kernel.run(OPEN.format(988105)) == ""
    code = "import asyncio, time\ntask = asyncio.create_task(ep.bash('sleep 988106'))\nawait asyncio.sleep(0.2)"
    assert kernel.run(code) == ""
    assert kernel.run("time.sleep(0.1); ep.close()") == "closed"
    assert on_host("988105") + on_host("988106") == []
    assert kernel.run("await task") == "SandboxLost"


def test_close_in_a_cell_closes(kernel: Kernel) -> None:
    assert kernel.run(OPEN.format(988103)) == ""
    assert len(on_host("988103")) == 1
    assert kernel.run("ep.close(); import os; os.path.exists(f'/proc/{ep._episode.sandbox.pid}')") == "False"
    assert on_host("988103") == []


def test_a_restart_leaves_nothing(kernel: Kernel) -> None:
    assert kernel.run(OPEN.format(988104)) == ""
    assert len(on_host("988104")) == 1
    kernel.restart()
    assert on_host("988104") == []
    assert list(kernel.folder.glob("codeenv-episode-*")) == []


def test_a_kernel_that_is_killed_leaves_no_box(kernel: Kernel) -> None:
    assert kernel.run(OPEN.format(988107)) == ""
    assert len(on_host("988107")) == 1
    os.kill(kernel.manager.provisioner.pid, signal.SIGKILL)  # type: ignore[union-attr]
    wait(lambda: not on_host("988107"))
