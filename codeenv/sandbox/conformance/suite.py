"""Every check as a test. Import `test_sandbox` into a module of yours, or name this one to pytest."""

from __future__ import annotations

import pytest

from codeenv.sandbox.conformance.catalogue import Check, checks
from codeenv.sandbox.conformance.plugin import RunCheck


@pytest.mark.parametrize("check", checks(), ids=lambda check: check.id)
def test_sandbox(run_check: RunCheck, check: Check) -> None:
    """The backend keeps this promise."""
    run_check(check)
