"""Every backend keeps every promise of the port, and a check fails where one is broken."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from codeenv.sandbox.api import SandboxProvider
from codeenv.sandbox.conformance import session, support
from codeenv.sandbox.conformance.catalogue import TOPICS, checks
from codeenv.sandbox.conformance.session import Session
from codeenv.sandbox.conformance.suite import test_sandbox as test_sandbox
from codeenv.sandbox.conformance.support import NotPromised
from tests.conftest import BACKENDS, provider_or_skip
from tests.sandbox import broken
from tests.sandbox.broken import Wrapped, WrappedProvider


@pytest.fixture(scope="module", params=[*BACKENDS, "beam"])
def conformance_provider(request: pytest.FixtureRequest) -> SandboxProvider:
    return provider_or_skip(request.param)


@pytest.fixture(autouse=True)
def what_the_gateway_has_not(request: pytest.FixtureRequest) -> None:
    if "beam-specs.the_work_directory_is_the_specs" in request.node.name:
        pytest.skip("the gateway's boxes are local ones, whose root is read-only, and which have one work directory")
