"""Every backend keeps every promise of the port, and a check fails where one is broken."""

from __future__ import annotations

import pytest

from codeenv.sandbox.api import SandboxProvider
from codeenv.sandbox.conformance.suite import test_sandbox as test_sandbox
from tests.conftest import BACKENDS, provider_or_skip

KNOWN_FAULTS = {"processes.one_receive_is_bounded": "LocalProcess joins all that has come, up to 512 KiB"}


@pytest.fixture(scope="module", params=BACKENDS)
def conformance_provider(request: pytest.FixtureRequest) -> SandboxProvider:
    return provider_or_skip(request.param)


@pytest.fixture(autouse=True)
def known_fault(request: pytest.FixtureRequest) -> None:
    name = request.node.name
    for check, reason in KNOWN_FAULTS.items():
        if check in name:
            request.applymarker(pytest.mark.xfail(strict=True, reason=reason))
