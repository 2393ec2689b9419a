"""What tests of Beam boxes are made with."""

from __future__ import annotations

from typing import Any

from codeenv.sandbox import make_provider
from codeenv.sandbox.api import SandboxSpec
from codeenv.sandbox.beam.provider import BeamProvider
from codeenv.sandbox.beam.sandbox import BeamSandbox
from tests.beam_gateway.profiles import Conduct
from tests.beam_gateway.server import Gateway


def hasty(**changes: Any) -> Conduct:
    """A server that is less patient than a real one."""
    return Conduct(**{"exec_connect": 0.1, "address_wait": 0.1, "manager_wait": 0.5, "ttl_check": 0.05, **changes})


def beam(gateway: Gateway, **settings: Any) -> BeamProvider:
    place = {"host": gateway.host, "port": gateway.port, "token": gateway.token, "token_in_box": "allow"}
    made = make_provider("beam", **{**place, **settings})
    assert isinstance(made, BeamProvider)
    return made


async def opened(provider: BeamProvider, **spec: Any) -> BeamSandbox:
    box = await provider.open(SandboxSpec(**spec))
    assert isinstance(box, BeamSandbox)
    return box
