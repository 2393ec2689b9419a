"""Sandboxes: the port (`api`) and its backends. `get_provider` is the door."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from importlib import import_module
from inspect import signature
from typing import Any

from pydantic import ValidationError

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

SECRETS = ("token",)
"""Settings that may not be written where they are saved or shown: environment arguments, a command line."""


def public_settings(settings: Mapping[str, Any] | None) -> dict[str, Any]:
    """Settings of a backend that come from a place which is saved. :raises ValueError: there is a secret among them."""
    found = dict(settings or {})
    if secrets := [name for name in SECRETS if name in found]:
        raise ValueError(
            f"the sandbox setting {secrets[0]!r} would be saved with the results; leave it out and set the environment "
            "variable BEAM_TOKEN, or run `beam login`"
        )
    return found


def make_provider(name: str, /, **settings: Any) -> SandboxProvider:
    """A backend by its exact name, not probed. :raises ValueError: no such backend, or an unknown setting."""
    if name not in BACKENDS:
        raise ValueError(f"unknown sandbox {name!r}; valid: {', '.join(['auto', *BACKENDS])}")
    module, attribute = BACKENDS[name]
    factory: Callable[..., SandboxProvider] = getattr(import_module(module), attribute)
    valid = list(signature(factory).parameters)
    if unknown := sorted(set(settings) - set(valid)):
        raise ValueError(
            f"unknown settings of sandbox {name!r}: {', '.join(unknown)}; valid: {', '.join(valid) or 'none'}"
        )
    try:
        return factory(**settings)
    except ValidationError as error:
        faults = error.errors(include_input=False, include_url=False)
        text = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in faults)
        raise ValueError(f"settings of sandbox {name!r}: {text}") from None


def probe_all() -> list[Probe]:
    """Try every backend on this host. Blocks for at most 10 s each."""
    return [make_provider(name).probe() for name in BACKENDS]


def get_provider(name: str = "auto", /, **settings: Any) -> SandboxProvider:
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
