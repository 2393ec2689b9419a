"""What a box must not see of the host, of us, and of other boxes."""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
import uuid
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from codeenv.sandbox.api import Sandbox, SandboxProvider, SandboxSpec
from codeenv.sandbox.conformance.support import LONG, NotPromised, failure, isolates

_SECRET_NAMES = ("TOKEN", "SECRET", "PASSWORD", "PASSWD", "API_KEY", "CREDENTIAL", "PRIVATE_KEY")

_SEARCH = """
import os, sys
wanted = sys.stdin.buffer.read()
for pid in filter(str.isdigit, os.listdir("/proc")):
    for name in ("environ", "cmdline"):
        try:
            with open(f"/proc/{pid}/{name}", "rb") as file:
                if wanted in file.read():
                    print(pid, name)
        except OSError:
            pass
"""

_CONNECT = """
import socket, sys, threading
def attempt(host, port):
    try:
        socket.create_connection((host, port), timeout=3).close()
        print(host, port, flush=True)
    except OSError:
        pass
goals = [goal.split(":") for goal in sys.argv[1:]]
threads = [threading.Thread(target=attempt, args=(host, int(port))) for host, port in goals]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


@contextmanager
def _our_variable(value: str) -> Generator[str]:
    """A variable of ours, as a secret of the host would be one."""
    name = "CODEENV_CONFORMANCE"
    os.environ[name] = value
    try:
        yield name
    finally:
        del os.environ[name]


async def check_our_variables_do_not_come_in(provider: SandboxProvider, spec: SandboxSpec) -> None:
    """No environment variable of the process that makes the box is seen by its commands."""
    secret = uuid.uuid4().hex
    with _our_variable(secret) as name:
        async with provider.create(spec) as box:
            seen = (await box.exec("env -0")).stdout
            assert secret.encode() not in seen
            assert name.encode() not in seen
            async with box.open_process("env -0") as process:
                assert secret.encode() not in await process.receive()


async def check_no_variable_is_named_like_a_secret(box: Sandbox) -> None:
    """Commands are given no variable whose name says that it is a token, a key or a password."""
    names = [line.split(b"=")[0].decode() for line in (await box.exec("env -0")).stdout.split(b"\0") if line]
    assert names
    assert [name for name in names if any(word in name.upper() for word in _SECRET_NAMES)] == []


async def check_the_hosts_processes_cannot_be_seen(provider: SandboxProvider, spec: SandboxSpec) -> None:
    """No process that can be seen in a box has variables or arguments of the host's in it."""
    isolates(provider)
    secret = uuid.uuid4().hex
    with _our_variable(secret), subprocess.Popen(["sleep", str(LONG)], env={**os.environ, "ALSO": secret}) as holder:
        try:
            async with provider.create(spec) as box:
                result = await box.exec(["python3", "-S", "-c", _SEARCH], stdin=secret.encode())
                assert (result.exit_code, result.stdout) == (0, b""), result
        finally:
            holder.kill()


async def check_the_hosts_files_cannot_be_read(provider: SandboxProvider, box: Sandbox) -> None:
    """No path of a box, through links and /proc too, leads to a file of the host's."""
    isolates(provider)
    secret = uuid.uuid4().hex
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "secret"
        path.write_text(secret)
        path.chmod(0o644)
        path.parent.chmod(0o755)
        for prefix in ("", "/proc/1/root", "/proc/self/root", "/../../..", "/proc/1/cwd/../../../.."):
            await failure(box.read_file(f"{prefix}{path}"), OSError)
            await failure(box.list_files(f"{prefix}{folder}"), OSError)
            await box.exec(["ln", "-sfn", f"{prefix}{path}", "link"])
            await failure(box.read_file("link"), OSError)
            assert secret.encode() not in (await box.exec(["cat", f"{prefix}{path}", "link"])).stdout


async def check_a_box_cannot_write_to_the_host(provider: SandboxProvider, box: Sandbox) -> None:
    """What a box writes under the name of a file of the host's is the box's own."""
    isolates(provider)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mine"
        path.write_text("the host's")
        for target in (str(path), f"/proc/1/root{path}"):
            try:
                await box.write_file(target, b"the box's")
            except OSError:
                pass
        await box.exec(["sh", "-c", "mkdir -p $(dirname $0); echo changed > $0; rm -rf $(dirname $0)", str(path)])
        assert path.read_text() == "the host's"


async def check_there_is_no_network(provider: SandboxProvider, spec: SandboxSpec) -> None:
    """Unless it was asked for, a box reaches neither the internet nor a port of the host's."""
    if not provider.capabilities.network_off:
        raise NotPromised("it cannot switch the network off")
    async with provider.create(spec.model_copy(update={"network": False})) as box:
        with socket.create_server(("0.0.0.0", 0)) as server:
            port = server.getsockname()[1]
            socket.create_connection(("127.0.0.1", port), timeout=3).close()  # it listens
            goals = [f"127.0.0.1:{port}", "1.1.1.1:443", "8.8.8.8:53", "169.254.169.254:80"]
            result = await box.exec(["python3", "-c", _CONNECT, *goals], timeout=60)
        assert (result.exit_code, result.stdout) == (0, b""), result


async def check_two_boxes_share_nothing(provider: SandboxProvider, spec: SandboxSpec) -> None:
    """A box sees neither another's files nor its processes, and each has an id of its own."""
    isolates(provider)
    secret = uuid.uuid4().hex
    async with provider.create(spec) as one, provider.create(spec) as two:
        assert one.id != two.id
        places = [f"{one.workdir}/{secret}", f"{one.scratch}/{secret}", f"/dev/shm/{secret}"]
        await one.exec(
            ["sh", "-c", 'for f in "$@"; do echo x > $f; done; sleep 600 $0 2> /dev/null &', secret, *places]
        )
        await one.exec(["sh", "-c", f"THEIRS={secret} sleep {LONG} &"])
        assert (await two.exec(["ls", *places])).stdout == b""
        result = await two.exec(["python3", "-S", "-c", _SEARCH], stdin=secret.encode())
        assert (result.exit_code, result.stdout) == (0, b""), result


async def check_two_boxes_have_files_of_their_own(provider: SandboxProvider, spec: SandboxSpec) -> None:
    """The same relative path is another file in another box, isolated or not."""
    async with provider.create(spec) as one, provider.create(spec) as two:
        await one.write_file("f", b"one")
        await two.write_file("f", b"two")
        assert await one.read_file("f") == b"one"
        assert (await two.exec("cat f")).stdout == b"two"
