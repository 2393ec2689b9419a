"""What a spec may ask for: it is given, or refused when the task is loaded."""

from __future__ import annotations

from typing import Any

import anyio.to_thread

from codeenv.sandbox.api import Probe, SandboxProvider, SandboxSpec, UnsupportedSpec
from codeenv.sandbox.conformance.support import NotPromised, failure


async def check_a_probe_says_that_it_works(provider: SandboxProvider) -> None:
    """`probe` of a backend that works says so, with its name and what it can do."""
    probe: Probe = await anyio.to_thread.run_sync(provider.probe)
    assert (probe.backend, probe.available, probe.error) == (provider.name, True, ""), probe
    assert probe.capabilities == provider.capabilities, probe
    assert probe.versions, probe


async def _refused(provider: SandboxProvider, spec: SandboxSpec, name: str, value: Any) -> None:
    asked = spec.model_copy(update={name: value})

    async def check() -> None:
        provider.check(asked)

    for error in (await failure(check(), UnsupportedSpec), await failure(provider.open(asked), UnsupportedSpec)):
        assert name in str(error), error


async def check_an_image_is_refused_where_there_are_none(provider: SandboxProvider, spec: SandboxSpec) -> None:
    """A backend without images refuses a spec that names one, by that name, at `check` and at `open`."""
    if provider.capabilities.images:
        raise NotPromised("it has images")
    await _refused(provider, spec, "image", "python:3.12")


async def check_a_gpu_is_refused_where_there_is_none(provider: SandboxProvider, spec: SandboxSpec) -> None:
    """A backend without GPUs refuses a spec that asks for one, by that name, at `check` and at `open`."""
    if provider.capabilities.gpu:
        raise NotPromised("it has GPUs")
    await _refused(provider, spec, "gpu", "A10G")


async def check_a_cpu_ceiling_is_refused_where_there_is_none(provider: SandboxProvider, spec: SandboxSpec) -> None:
    """A backend that cannot bound the CPU refuses a spec that asks for it, by that name, at `check` and at `open`."""
    if provider.capabilities.cpus != "none":
        raise NotPromised("it has a ceiling on the CPU")
    await _refused(provider, spec, "cpus", 0.5)


async def check_the_plain_spec_is_met(provider: SandboxProvider, spec: SandboxSpec) -> None:
    """A spec that asks for nothing special is met, however often it is checked."""
    provider.check(spec)
    provider.check(spec)


async def check_the_work_directory_is_the_specs(provider: SandboxProvider, spec: SandboxSpec) -> None:
    """The work directory is the one that the spec names, where the box has a file system of its own."""
    if provider.capabilities.isolation == "none":
        raise NotPromised("it isolates nothing: its directories are the host's")
    async with provider.create(spec.model_copy(update={"workdir": "/project/here"})) as box:
        assert box.workdir == "/project/here"
        await box.write_file("f", b"x")
        assert (await box.exec("pwd; cat f")).stdout == b"/project/here\nx"
