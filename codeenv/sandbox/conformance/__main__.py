"""`python -m codeenv.sandbox.conformance NAME [pytest's arguments]`: check one backend."""

from __future__ import annotations

import sys

import pytest

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit("usage: python -m codeenv.sandbox.conformance NAME|module:factory [pytest's arguments]")
    own = "codeenv.sandbox.conformance"
    sys.exit(pytest.main(["-p", f"{own}.plugin", "--pyargs", f"{own}.suite", "--sandbox", *sys.argv[1:]]))
