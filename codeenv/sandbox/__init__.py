"""Sandboxes: the port (`api`) and its backends. `get_provider` is the door."""

from __future__ import annotations

import logging
from collections.abc import Callable
from importlib import import_module
from typing import Any

from codeenv.sandbox.api import Probe, SandboxProvider, SandboxUnavailable

logger = logging.getLogger(__name__)

BACKENDS = {
    "bubblewrap": ("codeenv.sandbox.bubblewrap", "BubblewrapProvider"),
    "beam": ("codeenv.sandbox.beam.provider", "BeamProvider"),
    "unsafe-subprocess": ("codeenv.sandbox.subprocess", "SubprocessProvider"),
}
"""Every backend, strongest isolation first."""

AUTOMATIC = ("bubblewrap",)
"""What `auto` may pick: never one that isolates nothing, never one that bills."""


def make_provider(name: str, **settings: Any) -> SandboxProvider:
    """A backend by its exact name, not probed. :raises ValueError: no such backend, or an unknown setting."""
    if name not in BACKENDS:
        raise ValueError(f"unknown sandbox {name!r}; valid: {', '.join(['auto', *BACKENDS])}")
    module, attribute = BACKENDS[name]
    factory: Callable[..., SandboxProvider] = getattr(import_module(module), attribute)
    try:
        return factory(**settings)
    except TypeError as error:
        raise ValueError(f"sandbox {name!r} does not take these settings: {sorted(settings)} ({error})") from error


def probe_all() -> list[Probe]:
    """Try every backend on this host. Blocks for at most 10 s each."""
    return [make_provider(name).probe() for name in BACKENDS]


def get_provider(name: str = "auto", **settings: Any) -> SandboxProvider:
    """A backend that works here: `auto` is the strongest that may be picked unasked, found by running it.

    :raises SandboxUnavailable: it does not work on this host; the message says what failed and how to allow it.
    :raises ValueError: no such backend or setting.
    """
    failures: list[str] = []
    for candidate in AUTOMATIC if name == "auto" else (name,):
        provider = make_provider(candidate, **settings)
        probe = provider.probe()
        if probe.available:
            why = "the strongest that works on this host" if name == "auto" else "as asked"
            logger.info("sandbox: %s (%s)", candidate, why)
            return provider
        failures.append(f"{candidate}: {probe.error}")
    text = "no sandbox works on this host" if name == "auto" else f"sandbox {name!r} does not work on this host"
    if name == "auto":
        failures.append("sandbox='unsafe-subprocess' runs without any isolation, if that is what you want.")
    raise SandboxUnavailable(f"{text}. {' '.join(failures)}", stage="probe")
