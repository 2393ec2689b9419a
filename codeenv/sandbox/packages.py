"""Python packages for a box: resolved once on the host, kept in a cache by content, bound read-only.

Never from inside the box, which has no network. When the box's Python is the one we run under, installed distributions
that meet the requirement are copied (no network is asked); everything else goes through `uv pip` or `pip` by name.
"""

from __future__ import annotations

import compileall
import hashlib
import importlib.metadata as metadata
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import anyio.to_thread
import platformdirs
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from codeenv.sandbox.api import SandboxSpec, UnsupportedSpec
from codeenv.sandbox.python import BoxPython, resolve_python

INSTALL_SECONDS = 600

_prepared: dict[tuple[str | None, tuple[str, ...]], tuple[BoxPython, Path | None]] = {}
_preparing = threading.Lock()


def prepare(spec: SandboxSpec) -> tuple[BoxPython, Path | None]:
    """The Python and the package directory of such boxes, found or built at the first call. Blocks.

    :raises UnsupportedSpec: one of them cannot be had.
    """
    key = (spec.python, spec.packages)
    with _preparing:
        if not _is_ready(key):
            python = resolve_python(spec.python)
            _prepared[key] = (python, resolve_packages(spec.packages, python))
        return _prepared[key]


async def prepared(spec: SandboxSpec) -> tuple[BoxPython, Path | None]:
    """`prepare`, in a thread when there is something to do."""
    key = (spec.python, spec.packages)
    return _prepared[key] if _is_ready(key) else await anyio.to_thread.run_sync(prepare, spec)


def _is_ready(key: tuple[str | None, tuple[str, ...]]) -> bool:
    packages = _prepared[key][1] if key in _prepared else None
    return key in _prepared and (packages is None or packages.is_dir())


def cache_root() -> Path:
    """`$CODEENV_CACHE_DIR`, else the user's cache directory."""
    return Path(os.environ.get("CODEENV_CACHE_DIR") or platformdirs.user_cache_path("codeenv")) / "packages"


def resolve_packages(requirements: tuple[str, ...], python: BoxPython) -> Path | None:
    """The directory that holds these packages and all they need, built at the first call. None for no requirements.

    :raises UnsupportedSpec: a requirement cannot be parsed, found or installed.
    """
    if not requirements:
        return None
    try:
        wanted = [Requirement(text) for text in requirements]
    except InvalidRequirement as error:
        raise UnsupportedSpec(f"packages: {error}") from error
    installed = _installed(wanted) if python.tag == resolve_python().tag else None
    if installed is None:
        content = "\n".join(sorted(str(requirement) for requirement in wanted))
    else:
        content = "\n".join(sorted(_fingerprint(distribution) for distribution in installed))
    name = hashlib.sha256(f"{python.tag}\n{content}".encode()).hexdigest()[:32]
    target = cache_root() / name
    if not target.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        building = Path(tempfile.mkdtemp(prefix=".building-", dir=target.parent))
        try:
            if installed is None:
                _install(wanted, python, building)
            else:
                for distribution in installed:
                    _copy(distribution, building)
                compileall.compile_dir(building, quiet=2)
            for path in (
                building,
                *building.rglob("*"),
            ):  # for any user, whatever our umask: a box of root's is not root
                if not path.is_symlink():
                    path.chmod(path.stat().st_mode | (0o755 if path.is_dir() else 0o444))
            try:
                building.rename(target)
            except OSError:  # another process was first
                if not target.is_dir():
                    raise
        finally:
            shutil.rmtree(building, ignore_errors=True)
    return target


def _installed(wanted: list[Requirement]) -> list[metadata.Distribution] | None:
    """The installed distributions that meet `wanted` and all they need; None when one is missing or cannot be
    copied."""
    found: dict[str, metadata.Distribution] = {}
    seen: set[tuple[str, str]] = set()
    todo = [(requirement, "") for requirement in wanted]
    while todo:
        requirement, extra = todo.pop()
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
            continue
        try:
            distribution = metadata.distribution(requirement.name)
        except metadata.PackageNotFoundError:
            return None
        if not requirement.specifier.contains(distribution.version, prereleases=True) or requirement.url:
            return None
        origin = json.loads(distribution.read_text("direct_url.json") or "{}")
        if not distribution.files or origin.get("dir_info", {}).get("editable"):
            return None
        name = canonicalize_name(requirement.name)
        found[name] = distribution
        for wanted_extra in requirement.extras or {""}:
            if (name, wanted_extra) not in seen:
                seen.add((name, wanted_extra))
                todo += [(Requirement(text), wanted_extra) for text in distribution.requires or ()]
    return list(found.values())


def _fingerprint(distribution: metadata.Distribution) -> str:
    record = distribution.read_text("RECORD") or ""
    return f"{distribution.metadata['Name']}=={distribution.version} {hashlib.sha256(record.encode()).hexdigest()}"


def _copy(distribution: metadata.Distribution, target: Path) -> None:
    for file in distribution.files or ():
        source = Path(str(distribution.locate_file(file)))
        if ".." in file.parts or "__pycache__" in file.parts or not source.is_file():
            continue  # scripts land outside the package directory; byte-code is made anew
        destination = target / file
        destination.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, destination)


def _install(wanted: list[Requirement], python: BoxPython, target: Path) -> None:
    texts = [str(requirement) for requirement in wanted]
    uv = shutil.which("uv")
    if uv:
        command = [uv, "pip", "install", "--quiet", "--python", python.executable, "--target", str(target), *texts]
    else:
        pip = [sys.executable, "-m", "pip", "--python", python.executable, "install"]
        command = [*pip, "--quiet", "--no-input", "--target", str(target), *texts]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=INSTALL_SECONDS, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnsupportedSpec(
            f"packages {texts} could not be installed for Python {python.version}: {error}"
        ) from error
    if done.returncode != 0:
        reason = done.stderr.strip()[-800:] or done.stdout.strip()[-800:]
        raise UnsupportedSpec(f"packages {texts} could not be installed for Python {python.version}: {reason}")
    compiled = [python.executable, "-I", "-m", "compileall", "-q", str(target)]
    subprocess.run(compiled, capture_output=True, timeout=INSTALL_SECONDS)
