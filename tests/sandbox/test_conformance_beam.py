"""Beam, as the gateway for tests plays it, keeps every promise of the port."""

from __future__ import annotations

import pytest

from codeenv.sandbox.api import SandboxProvider
from codeenv.sandbox.conformance.suite import test_sandbox as test_sandbox
from tests.conftest import provider_or_skip


@pytest.fixture(scope="module")
def conformance_provider() -> SandboxProvider:
    return provider_or_skip("beam")


@pytest.fixture(autouse=True)
def what_the_gateway_has_not(request: pytest.FixtureRequest) -> None:
    if "specs.the_work_directory_is_the_specs" in request.node.name:
        pytest.skip("the gateway's boxes are local ones, whose root is read-only, and which have one work directory")
