"""What the isolating backend keeps apart: the host, the other boxes, and the agent from the commands. Root on the host
or not, the same holds."""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
import textwrap
from pathlib import Path

import anyio
import pytest

from codeenv.sandbox.api import Sandbox, SandboxProvider, SandboxSpec
from codeenv.sandbox.seccomp import NUMBERS, program

pytestmark = pytest.mark.anyio
SECRET = "sec" + "ret-7b1f"  # not in one piece, or the search would find this file's own text
CTYPES = "import ctypes; c = ctypes.CDLL(None, use_errno=True)"


async def python(box: Sandbox, code: str, timeout: float = 20) -> str:
    result = await box.exec(["python3", "-c", textwrap.dedent(code)], timeout=timeout, combine=True)
    assert result.exit_code == 0, result
    return result.stdout.decode().strip()


# --- the host's secrets ----------------------------------------------------------------------------------------


async def test_nothing_of_the_host_can_be_found(
    provider: SandboxProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".netrc").write_text(SECRET)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("API_KEY", SECRET)
    holder = subprocess.Popen(["sleep", "60"], env={"KEY": SECRET, "PATH": os.environ["PATH"]})  # a process of ours
    try:
        async with provider.create(SandboxSpec()) as other, provider.create(SandboxSpec()) as box:
            await other.write_file("theirs", SECRET.encode())
            await other.exec(f"setsid env THEIRS={SECRET} sleep 60 &")
            search = f"""
                all=$(cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n')
                grep -c "$(echo {SECRET} | tr -d ' ')" <<< "$all"  # not piped: it would find itself
                env | grep -c 7b1f
                grep -rls {SECRET[:3]}ret-7b1f / --include='*' --exclude-dir=proc --exclude-dir=usr --exclude-dir=lib
                ls -d {tmp_path} {Path.home()}/.* /home/* /root/.ssh /var /run /srv /boot /sys 2>/dev/null
                ls /proc | grep -c '^[0-9]'"""
            result = await box.exec(search.replace(SECRET, f"{SECRET[:8]}''{SECRET[8:]}"), timeout=30)
            found = result.stdout.decode().split()
            assert found[:2] == ["0", "0"], found
            assert int(found[-1]) < 10  # its own processes only
            assert found[2:-1] == []
    finally:
        holder.kill()
        holder.wait()


async def test_variables_are_the_boxs_own(make_box, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/host")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/host")
    box = await make_box(env={"MINE": "1"})
    variables = dict(line.split("=", 1) for line in (await box.exec("env -0")).stdout.decode().split("\0") if line)
    assert variables["MINE"] == "1"
    assert variables["HOME"] == "/tmp/home"
    assert not {name for name in variables if name.startswith(("PYTHONPATH", "LD_", "PYTEST", "UV_", "HF_"))}


async def test_only_the_bound_prefix_of_a_home_can_be_seen(box: Sandbox) -> None:
    prefix = Path(sys.base_prefix)
    for parent in prefix.parents:
        if parent != Path("/") and parent != Path("/usr"):
            listed = (await box.exec(["ls", "-A", str(parent)])).stdout.decode().split()
            assert listed == [prefix.relative_to(parent).parts[0]]


async def test_a_command_gets_three_descriptors_and_nothing_else(box: Sandbox) -> None:
    """Root's boxes are started with a descriptor of a mount namespace of the host's."""
    seen = await python(box, "import os; print(sorted(int(n) for n in os.listdir('/proc/self/fd')))")
    assert seen == "[0, 1, 2, 3]"  # 3 is the listing's own


@pytest.mark.parametrize(
    "path",
    ["environ", "fd", "fd/0", "fdinfo/0", "mem", "root", "cwd", "exe", "maps", "map_files", "stack", "auxv", "io"],
)
async def test_process_1_is_closed_to_the_commands(box: Sandbox, path: str) -> None:
    denied = f"""
        import os
        path = "/proc/1/{path}"
        try:
            os.listdir(path) if os.path.isdir(path) and not os.path.islink(path) else open(path, "rb").read(1)
        except OSError as error:
            print("denied", error.errno)
        else:
            print("open")
    """
    assert (await python(box, denied)).startswith("denied")


@pytest.mark.parametrize("request_number", [16, 0x4206], ids=["attach", "seize"])
async def test_process_1_cannot_be_traced(box: Sandbox, request_number: int) -> None:
    assert await python(box, f"{CTYPES}; print(c.ptrace({request_number}, 1, 0, 0), ctypes.get_errno())") == "-1 1"


async def test_no_signal_reaches_process_1(box: Sandbox) -> None:
    code = """
        import os, time
        for number in range(1, 65):
            try: os.kill(1, number)
            except OSError as error: print(number, error)
        time.sleep(0.2)
        print("sent")
    """
    assert (await python(box, code)).endswith("sent")
    assert (await box.exec("echo fine; exit 3")).exit_code == 3


async def test_frames_cannot_be_forged_through_any_descriptor(box: Sandbox) -> None:
    code = r"""
        import os
        for pid in filter(str.isdigit, os.listdir("/proc")):
            if int(pid) == os.getpid(): continue
            for number in range(20):
                try:
                    with open(f"/proc/{pid}/fd/{number}", "wb", buffering=0) as file: file.write(b"\0\0\0\0r\0\0\0\1")
                    print("wrote", pid, number)
                except OSError: pass
    """
    assert await python(box, code) == ""


# --- the network and the kernel ----------------------------------------------------------------------------------


async def test_there_is_no_network(box: Sandbox) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_server(("0.0.0.0", 0)) as everywhere:
        for port in (server.getsockname()[1], everywhere.getsockname()[1]):
            socket.create_connection(("127.0.0.1", port), timeout=2).close()  # it listens
            reply = await python(
                box,
                f"""
                import socket
                for host in ("127.0.0.1", "localhost", "10.0.0.1", "1.1.1.1"):
                    try: socket.create_connection((host, {port}), timeout=1); print("connected", host)
                    except OSError as error: pass
                print(socket.if_nameindex())
                """,
            )
            assert reply == "[(1, 'lo')]"


async def test_abstract_sockets_of_the_host_cannot_be_reached(box: Sandbox) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("\0codeenv-test-abstract")
        server.listen()
        code = """
            import socket
            try: socket.socket(socket.AF_UNIX).connect("\\0codeenv-test-abstract"); print("connected")
            except OSError as error: print(type(error).__name__)
        """
        assert await python(box, code) == "ConnectionRefusedError"


async def test_a_box_can_talk_to_itself(box: Sandbox) -> None:
    code = """
        import socket
        server = socket.create_server(("127.0.0.1", 0)); client = socket.create_connection(server.getsockname())
        client.sendall(b"x"); print(server.accept()[0].recv(1))
        a, b = socket.socketpair(); a.send(b"y"); print(b.recv(1))
    """
    assert await python(box, code) == "b'x'\nb'y'"


@pytest.mark.parametrize("family", ["AF_VSOCK", "AF_PACKET", "AF_ALG", "AF_BLUETOOTH", "AF_TIPC", "AF_CAN"])
async def test_other_socket_families_do_not_exist(box: Sandbox, family: str) -> None:
    code = f"""
        import errno, socket
        try: socket.socket(getattr(socket, "{family}", 31), socket.SOCK_STREAM)
        except OSError as error: print(errno.errorcode[error.errno])
    """
    assert await python(box, code) == "EAFNOSUPPORT"


machine = os.uname().machine
DENIED = {
    "io_uring_setup": 425, "io_uring_enter": 426,
    "bpf": {"x86_64": 321}.get(machine, 280), "mount": {"x86_64": 165}.get(machine, 40),
    "umount2": {"x86_64": 166}.get(machine, 39), "keyctl": {"x86_64": 250}.get(machine, 219),
    "add_key": {"x86_64": 248}.get(machine, 217), "userfaultfd": {"x86_64": 323}.get(machine, 282),
    "perf_event_open": {"x86_64": 298}.get(machine, 241), "process_vm_readv": {"x86_64": 310}.get(machine, 270),
    "pivot_root": {"x86_64": 155}.get(machine, 41), "init_module": {"x86_64": 175}.get(machine, 105),
}  # fmt: skip


@pytest.mark.parametrize("name", DENIED)
async def test_a_denied_system_call_fails_as_if_it_were_not_there(box: Sandbox, name: str) -> None:
    if not program():
        pytest.skip(f"no system-call filter for {machine}")
    code = f"{CTYPES}; print(c.syscall({DENIED[name]}, 0, 0, 0, 0, 0), ctypes.get_errno())"
    assert await python(box, code) == ("-1 38" if name.startswith("io_uring") else "-1 1")


@pytest.mark.skipif(machine != "x86_64", reason="the 32-bit call table is x86's")
async def test_the_32_bit_call_table_is_refused(box: Sandbox) -> None:
    """`int 0x80` with getpid (20): 32-bit numbers would walk round the filter."""
    code = """
        import ctypes, mmap
        page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        page.write(bytes.fromhex("53b814000000cd805bc3"))  # push rbx; mov eax, 20; int 0x80; pop rbx; ret
        call = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
        print(call())
    """
    assert await python(box, code) == "-38"
    x32 = "import ctypes; c = ctypes.CDLL(None, use_errno=True); print(c.syscall(0x40000000 + 39), ctypes.get_errno())"
    assert await python(box, x32) == "-1 38"


@pytest.mark.parametrize("known", sorted(NUMBERS))
def test_the_filter_decides_by_architecture_family_and_number(known: str) -> None:
    """The program is run here, instruction by instruction, for every known architecture."""
    audit, socket_number, denied = NUMBERS[known]
    assert run_filter(program(known), audit, socket_number, 1) == 0x7FFF0000
    assert run_filter(program(known), audit, socket_number, 2) == 0x7FFF0000
    assert run_filter(program(known), audit, socket_number, 16) == 0x7FFF0000
    assert run_filter(program(known), audit, socket_number, 40) == 0x50000 + 97
    assert run_filter(program(known), audit, socket_number + 1, 40) == 0x7FFF0000
    assert run_filter(program(known), audit, 0x40000000 + 1, 0) == 0x50000 + 38
    assert run_filter(program(known), audit ^ 1, 1, 0) == 0x50000 + 38
    for number in range(500):
        answer = run_filter(program(known), audit, number, 2)
        assert answer == (0x50000 + (38 if 425 <= number <= 427 else 1) if number in denied else 0x7FFF0000)
    assert program("vax") == b""


def run_filter(code: bytes, architecture: int, number: int, argument: int) -> int:
    data = {0: number, 4: architecture, 16: argument}
    accumulator = at = 0
    instructions = list(struct.iter_unpack("=HBBI", code))
    while True:
        operation, yes, no, value = instructions[at]
        at += 1
        if operation == 0x20:
            accumulator = data[value]
        elif operation == 0x06:
            return value
        else:
            at += yes if (accumulator == value if operation == 0x15 else accumulator >= value) else no


@pytest.mark.parametrize(
    "command",
    [
        "unshare --user true",
        "unshare --map-root-user true",
        "unshare --mount true",
        "unshare --net true",
        "mount -t tmpfs x /workspace",
        "mount -o remount,rw /",
        "umount /proc",
        "chroot / true",
        "mknod /workspace/device b 8 0",
        "echo x > /proc/sys/kernel/hostname",
        "echo 1 > /proc/sysrq-trigger",
        "hostname other",
        "nsenter --mount=/proc/1/ns/mnt true",
        "touch /x",
        "touch /usr/x",
        "touch /etc/x",
        "touch /dev/x",
        "echo x >> /etc/passwd",
        "rm -f /etc/passwd",
        "mkdir /proc/x",
        "chmod 777 /etc",
        "su -c true",
        "sudo -n true",
        "dmesg",
        "date -s 2000-01-01",
    ],
)
async def test_what_only_a_host_may_do_is_refused(box: Sandbox, command: str) -> None:
    result = await box.exec(command, timeout=10)
    assert result.exit_code not in (0, 137), result


async def test_no_program_gains_rights(box: Sandbox) -> None:
    status = (await box.exec("cat /proc/self/status")).stdout.decode()
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert fields["NoNewPrivs"] == "1"
    assert fields["Seccomp"] == ("2" if program() else "0")
    assert {fields[name].strip() for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert fields["Uid"].split() == ["1000"] * 4
    await box.exec("cp /usr/bin/id id; chmod 6755 id")
    assert (await box.exec("./id -u")).stdout == b"1000\n"


async def test_there_are_no_mounts_that_can_be_written_without_a_bound(box: Sandbox) -> None:
    writable = "awk '$4 ~ /^rw/ && $3 == \"tmpfs\" {print $2, $4}' /proc/mounts"
    for line in (await box.exec(writable)).stdout.decode().splitlines():
        place, options = line.split(" ", 1)
        assert "size=" in options, place
        assert place in ("/tmp", "/workspace", "/dev/shm")


async def test_two_boxes_share_nothing(provider: SandboxProvider) -> None:
    async with provider.create(SandboxSpec()) as one, provider.create(SandboxSpec()) as two:
        await one.exec("echo x | tee /tmp/f /dev/shm/f f; setsid sleep 50 &")
        assert (await two.exec("ls /tmp/f /dev/shm/f f 2>/dev/null; ps -e | grep -c sleep")).stdout == b"0\n"
        ipc = "import ctypes; c = ctypes.CDLL(None); print(c.shmget(4711, 4096, 0o1666))"
        assert int(await python(one, ipc)) >= 0
        missing = "import ctypes; c = ctypes.CDLL(None); print(c.shmget(4711, 4096, 0))"
        assert await python(two, missing) == "-1"


async def test_each_of_roots_boxes_has_a_host_user_of_its_own(provider: SandboxProvider) -> None:
    if os.geteuid():
        pytest.skip("only root can hand out users")
    async with provider.create(SandboxSpec()) as one, provider.create(SandboxSpec()) as two:
        owners = {os.stat(f"/proc/{box.pid}").st_uid for box in (one, two)}  # type: ignore[attr-defined]
        assert len(owners) == 2
        assert min(owners) >= 2_000_000_000


# --- as any user ----------------------------------------------------------------------------------------------

PLAIN_USER = """
import anyio, json, os, sys
from codeenv.sandbox import get_provider
from codeenv.sandbox.api import SandboxSpec

async def main():
    provider = get_provider("auto")
    async with provider.create(SandboxSpec(processes=40, disk_mb=8)) as box:
        await box.write_file("f", b"x", mode=0o600)
        out = {}
        out["uid"] = os.geteuid()
        out["box"] = (await box.exec("id -u; cat f; cat /proc/1/environ; ls /proc/self/fd | wc -l")).stdout.decode()
        out["etc"] = (await box.exec("touch /etc/x /x")).exit_code
        out["net"] = (await box.exec("cat /proc/net/dev | grep -c :")).stdout.decode()
        bomb = "for i in $(seq 100); do sleep 30 & done; wait"
        out["bomb"] = (await box.exec(bomb, timeout=2, combine=True)).stdout.decode()
        out["next"] = (await box.exec("echo fine")).stdout.decode()
        out["disk"] = (await box.exec("head -c 20000000 /dev/zero > big")).exit_code
        out["files"] = [e.path for e in await box.list_files()]
    print(json.dumps(out))
anyio.run(main)
"""


def test_it_runs_for_a_user_without_any_rights(provider: SandboxProvider) -> None:
    """When the tests run as root: everything once more from a process of `nobody`. Its Python and packages may lie
    where nobody can walk to, so root shows them in public, in a mount namespace of their own (Python under its own
    name, by which it finds its libraries)."""
    if os.geteuid():
        pytest.skip("these tests already run as a plain user")
    places = {
        "python": sys.base_prefix,
        "site": str(Path(anyio.__file__).parents[1]),
        "code": str(Path(__file__).parents[2]),
    }
    script = "set -e; mount -t tmpfs -o mode=755 tmpfs /opt; cd /opt; umask 022\n"
    for name, source in places.items():
        script += f"mkdir {name}; mount --rbind '{source}' {name}\n"
    shut = [path for path in reversed(Path(sys.base_prefix).parents) if not path.stat().st_mode & 0o001]
    if shut:
        script += f"mount -t tmpfs -o mode=755 tmpfs {shut[0]}; mkdir -p {sys.base_prefix}\n"
        script += f"mount --rbind /opt/python {sys.base_prefix}\n"
    script += (
        "mkdir -m 777 tmp; cd /; exec setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs "
        f"env -i PATH=/usr/bin:/bin HOME=/opt/tmp TMPDIR=/opt/tmp PYTHONPATH=/opt/site:/opt/code "
        f"PYTHONDONTWRITEBYTECODE=1 "
        f"{sys.base_prefix}/bin/python3 -c '{PLAIN_USER}'"
    )
    done = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    out = json.loads(done.stdout)
    assert out["uid"] == 65534
    assert out["box"] == "1000\nx4\n"
    assert out["etc"] == 1
    assert out["net"].strip() == "1"
    assert "Resource temporarily unavailable" in out["bomb"]
    assert out["next"] == "fine\n"
    assert out["disk"] != 0
    assert out["files"] == ["big", "f"]
