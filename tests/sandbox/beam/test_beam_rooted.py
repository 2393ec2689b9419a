"""The agent where it starts as root: it keeps every promise of the port, and no command can get at it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from codeenv.sandbox.api import SandboxProvider, SandboxSpec
from codeenv.sandbox.beam.sandbox import BeamSandbox
from codeenv.sandbox.conformance.suite import test_sandbox as test_sandbox
from tests.sandbox.beam.rooted import RootedContainer, RootedProvider, why_not

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(bool(why_not()), reason=why_not())]


@pytest.fixture(scope="module")
def conformance_provider() -> SandboxProvider:
    return RootedProvider()


@pytest.fixture
async def box() -> AsyncIterator[BeamSandbox]:
    box = await RootedProvider().open(SandboxSpec())
    yield box
    await box.close()


async def said(box: BeamSandbox, command: str) -> str:
    done = await box.exec(command, combine=True, timeout=20)
    return done.stdout.decode()


async def test_commands_are_an_unprivileged_user_for_good(box: BeamSandbox) -> None:
    assert await said(box, "id -u; id -g; id -G") == "1000\n1000\n1000\n"
    assert await said(box, "grep -E '^(Uid|Gid|Groups|CapEff|CapPrm|CapBnd)' /proc/self/status | head -3") == (
        "Uid:\t1000\t1000\t1000\t1000\nGid:\t1000\t1000\t1000\t1000\nGroups:\t \n"
    )
    assert await said(box, "grep -E '^Cap(Eff|Prm|Inh|Amb)' /proc/self/status | tr -d '0\\n'") == (
        "CapInh:\tCapPrm:\tCapEff:\tCapAmb:\t"
    )
    for call in ("setuid", "seteuid", "setgid", "setegid"):
        assert "PermissionError" in await said(box, f"python3 -c 'import os; os.{call}(0)'")


@pytest.mark.parametrize(
    "attack",
    [
        "kill -9 -1",
        "kill -9 $AGENT; kill -STOP $AGENT",
        "for pid in $(ls /proc | grep -E '^[0-9]+$'); do [ $pid = $$ ] || kill -9 $pid; done",
        "rm -rf /tmp/.codeenv-*; rm -rf /tmp/* /tmp/.[!.]*",
        "chmod 777 /tmp/.codeenv-* && echo x > /tmp/.codeenv-*/door",
        "mv /tmp/.codeenv-* /tmp/elsewhere",
        "ulimit -u 1; :",
    ],
    ids=["kill-all", "kill-it", "kill-each", "remove-its-files", "ring-its-door", "move-its-files", "no-processes"],
)
async def test_no_command_gets_at_the_agent(box: BeamSandbox, attack: str) -> None:
    assert box.facts is not None
    await box.exec(attack, env={"AGENT": str(box.facts.pid)}, timeout=20)
    assert await said(box, "echo alive") == "alive\n"


@pytest.mark.parametrize("file", ["mem", "environ", "fd/0", "maps", "cwd/x", "root/x"])
async def test_nothing_of_the_agents_process_can_be_read(box: BeamSandbox, file: str) -> None:
    assert box.facts is not None
    done = await box.exec(["head", "-c", "1", f"/proc/{box.facts.pid}/{file}"])
    assert done.stdout == b""
    assert done.exit_code != 0


async def test_the_agents_files_are_not_the_commands(box: BeamSandbox) -> None:
    assert "Permission denied" in await said(box, "ls /tmp/.codeenv-*")
    for name in ("facts", "call", "door", "log"):
        assert "Permission denied" in await said(box, f"head -c 1 $(ls -d /tmp/.codeenv-*)/{name}")
    assert [entry.path for entry in await box.list_files("/tmp") if ".codeenv" in entry.path] == []


@pytest.mark.parametrize("path", ["/etc/passwd", "/root/new", "/usr/bin/new"])
async def test_files_are_written_as_the_commands_user(box: BeamSandbox, path: str) -> None:
    with pytest.raises(PermissionError):
        await box.write_file(path, b"x")
    await box.write_file("mine", b"x")
    assert await said(box, "stat -c %u:%g mine .") == "1000:1000\n1000:1000\n"


async def test_saved_output_goes_through_no_link_that_a_command_made(box: BeamSandbox) -> None:
    await box.exec("ln -s /etc saved")
    done = await box.exec("seq 100000", output_limit=100, save_to="saved/new")
    assert done.saved_bytes == 0
    assert "No such file" in await said(box, "ls /etc/new")


async def test_a_work_directory_that_root_has_filled_is_the_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a script of `codeenv image build` leaves it."""
    real = RootedContainer.__init__

    def filled(self: RootedContainer) -> None:
        real(self)
        import subprocess

        script = "mkdir -p /workspace/deep; echo x > /workspace/deep/file; ln -s /etc/passwd /workspace/link"
        enter = ["nsenter", f"--target={self.pid}", "--mount", "--pid", "--root", "--wd", "--"]
        subprocess.run([*enter, "sh", "-c", script], check=True)

    monkeypatch.setattr(RootedContainer, "__init__", filled)
    box = await RootedProvider().open(SandboxSpec())
    try:
        assert await said(box, "echo y >> deep/file && rm link && mkdir deep/er && cat deep/file") == "x\ny\n"
        assert await said(box, "stat -c %u /etc/passwd") == "0\n"
    finally:
        await box.close()
