"""The Python inside a box and the packages it can import."""

from __future__ import annotations

import dataclasses
import importlib.metadata as metadata
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import anyio
import pytest

from codeenv.sandbox import packages
from codeenv.sandbox.api import Sandbox, SandboxProvider, SandboxSpec, UnsupportedSpec
from codeenv.sandbox.packages import resolve_packages
from codeenv.sandbox.python import resolve_python

ask = pytest.mark.anyio
OURS = f"{sys.version_info[0]}.{sys.version_info[1]}"


def other_pythons() -> list[str]:
    """Installations on this machine of another version than ours, 3.9 or newer, one of each."""
    found: dict[str, str] = {}
    siblings = Path(sys.base_prefix).parent.glob("*/bin/python3")
    places = [
        *map(str, siblings),
        "/usr/bin/python3",
        *filter(None, (shutil.which(f"python3.{n}") for n in range(9, 15))),
    ]
    for place in places:
        try:
            version = subprocess.run(
                [place, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
                capture_output=True,
                text=True,
                timeout=10,
            ).stdout.strip()
        except OSError:
            continue
        if version and tuple(map(int, version.split("."))) >= (3, 9) and version != OURS:
            found.setdefault(version, place)
    return list(found.values())


# --- which Python ----------------------------------------------------------------------------------------------


def test_our_own_is_resolved_to_its_base() -> None:
    python = resolve_python()
    assert python == resolve_python(sys.executable)
    assert python.version == ".".join(map(str, sys.version_info[:3]))
    assert os.path.realpath(sys.base_prefix) in python.prefixes
    assert ".venv" not in python.executable
    assert python.site


@ask
async def test_a_box_runs_the_python_asked_for(any_provider: SandboxProvider) -> None:
    candidates = other_pythons()
    if not candidates:
        pytest.skip("no other Python is installed here")
    for candidate in candidates if any_provider.name == "bubblewrap" else candidates[:1]:
        spec = SandboxSpec(python=candidate)
        async with any_provider.create(spec) as box:
            code = "import sys, ssl, json, sqlite3; print('%d.%d.%d' % sys.version_info[:3])"
            result = await box.exec(["python3", "-c", code])
            assert result.stdout.decode().strip() == resolve_python(candidate).version, result.stderr
            await box.write_file("f", b"x")
            assert (await box.exec("cat f; sleep 99", timeout=0.3)).stdout == b"x"
            assert len((await box.export()).entries) == 1


@ask
async def test_a_version_is_looked_up_on_the_path(provider: SandboxProvider, monkeypatch, tmp_path: Path) -> None:
    (tmp_path / f"python{OURS}").symlink_to(sys.executable)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    async with provider.create(SandboxSpec(python=OURS)) as box:
        result = await box.exec(["python3", "-c", "import sys; print(sys.version.split()[0])"])
        assert result.stdout.decode().startswith(OURS)


@ask
async def test_a_virtual_environment_is_followed_to_its_base(any_provider: SandboxProvider, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True)
    spec = SandboxSpec(python=str(tmp_path / "venv" / "bin" / "python"))
    assert resolve_python(spec.python).executable == resolve_python().executable
    async with any_provider.create(spec) as box:
        result = await box.exec(["python3", "-c", "import sys; print(sys.prefix == sys.base_prefix)"])
        assert result.stdout == b"True\n"


@pytest.mark.parametrize(
    ("name", "script"),
    [
        ("missing", None),
        ("silent", "exit 0"),
        ("talker", "echo hello"),
        ("failing", "echo 'wrong wrong' >&2; exit 3"),
        ("list", "echo '[]'"),
        ("old", """echo '{"version": "3.8.1", "prefixes": []}'"""),
        ("root", """echo '{"version": "3.12.1", "prefixes": ["/"]}'"""),
    ],
    ids=lambda value: value if value and " " not in value else "",
)
def test_what_is_no_python_is_refused_with_its_name(name: str, script: str | None, tmp_path: Path) -> None:
    path = tmp_path / name
    if script is not None:
        path.write_text(f"#!/bin/sh\ncat > /dev/null; {script}\n")
        path.chmod(0o755)
    with pytest.raises(UnsupportedSpec, match=name):
        resolve_python(str(path))


@ask
async def test_python_sees_a_clean_site(box: Sandbox) -> None:
    code = """if True:
        import importlib.metadata, sys, site
        print(sorted(d.name for d in importlib.metadata.distributions()))
        for name in ("anyio", "pydantic", "pip", "setuptools", "pytest"):
            try: __import__(name); print("found", name)
            except ImportError: pass
        import unittest, sqlite3, ctypes, asyncio, decimal"""
    result = await box.exec(["python3", "-c", code])
    assert (result.stdout, result.stderr, result.exit_code) == (b"[]\n", b"", 0)
    for folder in resolve_python().site:
        assert (await box.exec(f"touch {folder}/x; ls -A {folder}")).stdout == b""


@ask
async def test_python_on_the_path_is_the_same_as_python3(any_box: Sandbox) -> None:
    result = await any_box.exec("command -v python3 && python3 -c 'import sys; print(sys.executable)'")
    assert result.exit_code == 0
    assert result.stdout.decode().split()[0].startswith(os.path.dirname(resolve_python().executable))


# --- packages -----------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CODEENV_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(packages, "_prepared", {})
    return tmp_path / "cache" / "packages"


@ask
@pytest.mark.parametrize("umask", [0o022, 0o077], ids=oct)
async def test_a_package_of_ours_is_seen_in_the_box(any_provider: SandboxProvider, own_cache: Path, umask: int) -> None:
    spec = SandboxSpec(packages=("iniconfig",))
    old = os.umask(umask)
    try:
        any_provider.check(spec)
    finally:
        os.umask(old)
    async with any_provider.create(spec) as box:
        code = "import iniconfig, importlib.metadata as m; print(m.version('iniconfig'), iniconfig.__file__)"
        version, place = (await box.exec(["python3", "-c", code])).stdout.decode().split()
        assert version == metadata.version("iniconfig")
        if any_provider.name == "bubblewrap":
            assert str(own_cache) not in place
            assert (await box.exec(f"touch {os.path.dirname(place)}/x || echo x >> {place}")).exit_code != 0
            assert (await box.exec(["python3", "-c", "import anyio"])).exit_code == 1
            async with any_provider.create(SandboxSpec()) as bare:
                assert (await bare.exec(["python3", "-c", "import iniconfig"])).exit_code == 1


def test_packages_are_cached_by_content(own_cache: Path) -> None:
    python = resolve_python()
    first = resolve_packages(("iniconfig",), python)
    assert first is not None
    stamp = first.stat().st_mtime_ns
    assert resolve_packages(("iniconfig",), python) == first
    assert resolve_packages(("iniconfig>=1",), python) == first  # the same distribution meets it
    assert first.stat().st_mtime_ns == stamp
    assert [path.name for path in own_cache.iterdir()] == [first.name]
    assert resolve_packages(("iniconfig", "packaging"), python) != first
    assert resolve_packages((), python) is None
    assert list(first.rglob("*.pyc"))


@ask
async def test_a_cache_that_was_cleared_is_filled_again(provider: SandboxProvider, own_cache: Path) -> None:
    spec = SandboxSpec(packages=("iniconfig",))
    for _ in range(2):
        async with provider.create(spec) as box:
            assert (await box.exec(["python3", "-c", "import iniconfig"])).exit_code == 0
        shutil.rmtree(own_cache)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Make distributions, as if they were installed beside ours."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))

    def make(
        name: str, *requires: str, version: str = "1.0", editable: bool = False, extras: tuple[str, ...] = ()
    ) -> None:
        module = name.replace("-", "_")
        (site / f"{module}.py").write_text(f"NAME = {name!r}\n")
        info = site / f"{module}-{version}.dist-info"
        info.mkdir()
        lines = [f"Name: {name}", f"Version: {OURS}", *(f"Provides-Extra: {extra}" for extra in extras)]
        (info / "METADATA").write_text(
            "Metadata-Version: 2.1\n" + "\n".join([*lines, *(f"Requires-Dist: {r}" for r in requires)])
        )
        (info / "RECORD").write_text(f"{module}.py,,\n{info.name}/METADATA,,\n{info.name}/RECORD,,\n../../bin/tool,,\n")
        if editable:
            (info / "direct_url.json").write_text('{"url": "file:///x", "dir_info": {"editable": true}}')

    return make


def names(path: Path | None) -> set[str]:
    assert path is not None
    return {file.stem for file in path.glob("*.py")}


def test_what_a_package_needs_comes_too_by_marker_and_extra(installed) -> None:
    installed("need-a", "need-b", "need-c; python_version < '3'", "need-d; extra == 'more'", extras=("more",))
    installed("need-b", "Need_E>=1")
    installed("need-d")
    installed("need-e")
    python = resolve_python()
    assert names(resolve_packages(("need-a",), python)) == {"need_a", "need_b", "need_e"}
    assert names(resolve_packages(("Need.A[more]",), python)) == {"need_a", "need_b", "need_d", "need_e"}
    assert names(resolve_packages(("need-a; python_version < '3'", "need-e"), python)) == {"need_e"}


def test_packages_may_need_each_other_in_a_circle(installed) -> None:
    installed("ring-a", "ring-b[x]", "ring-a[y]; extra == 'z'", extras=("y", "z"))
    installed("ring-b", "ring-a[z]; extra == 'x'", extras=("x",))
    assert names(resolve_packages(("ring-a[z]",), resolve_python())) == {"ring_a", "ring_b"}


@pytest.mark.parametrize(
    "requirement",
    [
        "codeenv-no-such-package",
        "iniconfig>99",
        "editable-one",
        "needs-missing",
        "iniconfig @ https://127.0.0.1:9/x.whl",
    ],
)
def test_what_cannot_be_had_is_refused_soon_without_a_network(
    installed, own_cache: Path, provider: SandboxProvider, requirement: str
) -> None:
    installed("editable-one", editable=True)
    installed("needs-missing", "codeenv-no-such-package")
    started = time.monotonic()
    with pytest.raises(UnsupportedSpec, match=requirement.split(">")[0].split(" ")[0]):
        provider.check(SandboxSpec(packages=(requirement,)))
    assert time.monotonic() - started < 10
    assert list(own_cache.iterdir()) == []


@pytest.mark.parametrize("text", ["", "not a requirement", "-r file", "--index-url=http://x", "../path", "a==b==c"])
def test_what_is_no_requirement_is_refused(provider: SandboxProvider, text: str) -> None:
    with pytest.raises(UnsupportedSpec, match="packages"):
        provider.check(SandboxSpec(packages=(text,)))


@ask
async def test_opening_prepares_what_was_not_checked_without_holding_up_the_loop(provider: SandboxProvider) -> None:
    longest = 0.0

    async def watch() -> None:
        nonlocal longest
        while True:
            before = time.monotonic()
            await anyio.sleep(0.01)
            longest = max(longest, time.monotonic() - before)

    async with anyio.create_task_group() as group:
        group.start_soon(watch)
        async with provider.create(SandboxSpec(packages=("pytest",))) as box:
            assert (await box.exec(["python3", "-c", "import pytest"])).exit_code == 0
        group.cancel_scope.cancel()
    assert longest < 1


def test_a_python_without_a_package_directory_cannot_have_packages(
    provider: SandboxProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = dataclasses.replace(resolve_python(), site=())
    monkeypatch.setattr(packages, "resolve_python", lambda name=None: bare)
    with pytest.raises(UnsupportedSpec, match="no package directory"):
        provider.check(SandboxSpec(packages=("iniconfig",)))
