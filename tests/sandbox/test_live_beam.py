"""The conformance suite on a real account: `BEAM_TOKEN=... pytest -m live tests/sandbox/test_live_beam.py`. The account
pays for about a hundred and fifty checks, most of them in one small box."""

from __future__ import annotations

import os

import pytest

from codeenv.sandbox import get_provider
from codeenv.sandbox.api import SandboxProvider
from codeenv.sandbox.conformance.suite import test_sandbox as test_sandbox

pytestmark = pytest.mark.live

if not os.environ.get("BEAM_TOKEN"):
    pytest.skip("BEAM_TOKEN is not set: there is no real account to run on", allow_module_level=True)


@pytest.fixture(scope="module")
def conformance_provider() -> SandboxProvider:
    return get_provider("beam")
