"""The checks as others use them: on the command line, and in a test suite of their own that knows our plugin alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = 'pytest_plugins = ["codeenv.sandbox.conformance.plugin"]\n'
BACKEND = """
from codeenv.sandbox.subprocess import SubprocessProvider

class Provider(SubprocessProvider):
    def __init__(self, broken=False):
        self.broken = broken

    async def open(self, spec):
        box = await super().open(spec)
        if self.broken:
            async def read_file(path, **options):
                return b""
            box.read_file = read_file
        return box
"""
TESTS = """
import pytest
from backend import Provider
from codeenv.sandbox.api import SandboxSpec
from codeenv.sandbox.conformance.suite import test_sandbox

@pytest.fixture(scope="module")
def conformance_provider():
    return Provider()

@pytest.fixture(scope="module")
def conformance_spec():
    return SandboxSpec(env={"MINE": "1"})
"""
FEW = "commands.a_text or files.a_byte or limits or specs.the_work"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "backend.py").write_text(BACKEND)
    (tmp_path / "test_mine.py").write_text(TESTS)
    return tmp_path


def run(project: Path, *arguments: str) -> tuple[int, str]:
    command = [sys.executable, "-m", *arguments, "-p", "no:cacheprovider", "-rs", "-q"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout + done.stderr


def test_a_suite_of_ones_own_has_every_check(project: Path) -> None:
    code, said = run(project, "pytest", "-k", FEW)
    assert code == 0, said
    assert "4 passed, 7 skipped" in said
    assert "its ceiling on disk is 'none', not 'hard'" in said


def test_a_broken_backend_fails_with_what_was_seen(project: Path) -> None:
    code, said = run(
        project, "codeenv.sandbox.conformance", "backend:Provider", "--sandbox-settings", '{"broken": true}', "-k", FEW
    )
    assert code == 1, said
    assert "1 failed, 3 passed, 7 skipped" in said
    assert "files.a_byte_is_exact" in said
    assert "assert b'' == b'\\x00'" in said  # rewritten by pytest, as asserts of a test are


def test_a_backend_of_ours_by_its_name(project: Path) -> None:
    spec = ["--sandbox-spec", '{"env": {"A": "b"}}']
    code, said = run(project, "codeenv.sandbox.conformance", "unsafe-subprocess", *spec, "-k", "specs_variables")
    assert (code, "1 passed" in said) == (0, True), said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["codeenv.sandbox.conformance"], "usage: python -m codeenv.sandbox.conformance NAME"),
        (["codeenv.sandbox.conformance", "no-such", "-k", "any_bytes"], "unknown sandbox 'no-such'"),
        (["codeenv.sandbox.conformance", "unsafe-subprocess", "--sandbox-settings", "{", "-k", "any_bytes"], "JSON"),
        (
            ["codeenv.sandbox.conformance", "unsafe-subprocess", "--sandbox-spec", '{"a":1}', "-k", "any_bytes"],
            "Extra inputs",
        ),
    ],
    ids=["nothing", "unknown", "settings", "spec"],
)
def test_what_is_wrong_with_the_command_is_said(project: Path, arguments: list[str], words: str) -> None:
    code, said = run(project, *arguments)
    assert code != 0
    assert words in said


def test_a_suite_without_a_backend_says_what_to_do(project: Path) -> None:
    (project / "test_mine.py").write_text("from codeenv.sandbox.conformance.suite import test_sandbox\n")
    code, said = run(project, "pytest", "-k", "any_bytes")
    assert code != 0
    assert "override the fixture conformance_provider" in said
