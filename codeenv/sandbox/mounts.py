"""What a local box shows, as arguments of bwrap: of a box that is started on its own, and of a nursery, whose boxes
mount the rest themselves."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from codeenv.sandbox.api import MiB, SandboxSpec, UnsupportedSpec
from codeenv.sandbox.box.namespaces import CLONE
from codeenv.sandbox.python import BoxPython

ETC = Path(__file__).parent / "etc"
HOST_ETC = ("ld.so.cache", "alternatives")
"""What programs in /usr need of the host's /etc. Ours has a place for each: it is bound whole, as every bind costs a
box 0.2 ms."""
SHM_MB, SITE_BYTES = 64, 4096


def shown(python: BoxPython, packages: Path | None) -> list[str]:
    return [str(ETC), *python.prefixes, *([str(packages)] if packages else [])]


def may_be_forked(spec: SandboxSpec, python: BoxPython) -> bool:
    """Not where a box's own empty directories would hide the Python: bubblewrap can bind it there again."""
    own = ("/tmp", "/dev/shm", spec.workdir)
    return platform.machine() in CLONE and not any(
        prefix == place or prefix.startswith(place + "/") for prefix in python.prefixes for place in own
    )


def host_etc() -> list[str]:
    return [path for path in (f"/etc/{name}" for name in HOST_ETC) if os.path.exists(path)]


def nursery_arguments(
    spec: SandboxSpec, python: BoxPython, packages: Path | None, at: Mapping[str, str] | None
) -> list[str]:
    arguments = isolation()
    arguments.remove("--disable-userns")
    for name in ("SYS_ADMIN", "SETUID", "SETGID"):
        arguments += ["--cap-add", f"CAP_{name}"]
    arguments += ["--setenv", "LD_BIND_NOW", "1"]  # else each box would look up the same symbols again
    # A box of root's has another user than its nursery: it walks here as anybody.
    shown = [*python.prefixes, spec.workdir]
    for place in sorted({parent for path in shown for parent in Path(path).parents}):
        if place.parts[1:2] not in ((), ("usr",), ("tmp",)):
            arguments += ["--perms", "0755", "--dir", str(place)]
    return [*arguments, *file_system(spec, python, packages, at, True)]


def isolation() -> list[str]:
    return [
        "--unshare-all", "--unshare-user", "--disable-userns", "--uid", "1000", "--gid", "1000",
        "--hostname", "sandbox", "--die-with-parent", "--new-session", "--as-pid-1", "--cap-drop", "ALL", "--clearenv",
    ]  # fmt: skip


def file_system(
    spec: SandboxSpec, python: BoxPython, packages: Path | None, at: Mapping[str, str] | None, nursery: bool = False
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
    if nursery:
        arguments += [*_bare_devices(), "--dir", "/tmp"]
        if not spec.workdir.startswith("/tmp/"):
            arguments += ["--dir", spec.workdir]
    else:
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
    return [*arguments, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/" if nursery else spec.workdir]


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


def _bare_devices() -> list[str]:
    """As `--dev` has them, which would also mount pseudo-terminals, and for that leave us in a user namespace that owns
    none of the others."""
    arguments = ["--proc", "/proc", "--tmpfs", "/dev", "--dir", "/dev/pts", "--dir", "/dev/shm"]
    for name in ("null", "zero", "full", "random", "urandom", "tty"):
        arguments += ["--dev-bind", f"/dev/{name}", f"/dev/{name}"]
    for name, target in {
        "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
        "fd": "/proc/self/fd", "core": "/proc/kcore", "ptmx": "pts/ptmx",
    }.items():  # fmt: skip
        arguments += ["--symlink", target, f"/dev/{name}"]
    return arguments
