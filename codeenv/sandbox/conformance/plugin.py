"""The pytest plugin, for `pytest_plugins` or `-p`. The tests are in `suite`; override `conformance_provider`, and
`conformance_spec` where its boxes need more, to test a backend of your own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Generator
from importlib import import_module
from typing import Any

import pytest

from codeenv.sandbox import make_provider
from codeenv.sandbox.api import SandboxProvider, SandboxSpec
from codeenv.sandbox.conformance.catalogue import TOPICS, Check
from codeenv.sandbox.conformance.session import Session
from codeenv.sandbox.conformance.support import NotPromised

pytest.register_assert_rewrite(*(f"codeenv.sandbox.conformance.{topic}" for topic in TOPICS))

RunCheck = Callable[[Check], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("codeenv", "sandbox conformance")
    group.addoption("--sandbox", metavar="NAME", help="the backend to check, by its name or as module:factory")
    group.addoption("--sandbox-settings", metavar="JSON", default="{}", help="what the backend is made with")
    group.addoption("--sandbox-spec", metavar="JSON", default="{}", help="fields of every box's SandboxSpec")


def provider_of(name: str, settings: dict[str, Any]) -> SandboxProvider:
    """A backend of ours by its name, any other as `module:factory`."""
    module, colon, factory = name.partition(":")
    if not colon:
        return make_provider(name, **settings)
    return getattr(import_module(module), factory)(**settings)


@pytest.fixture(scope="session")
def conformance_provider(request: pytest.FixtureRequest) -> SandboxProvider:
    """The backend under test: `--sandbox`, or your own fixture of this name."""
    name: str | None = request.config.getoption("--sandbox")
    if not name:
        raise pytest.UsageError("name a backend with --sandbox, or override the fixture conformance_provider")
    return provider_of(name, json.loads(str(request.config.getoption("--sandbox-settings"))))


@pytest.fixture(scope="session")
def conformance_spec(request: pytest.FixtureRequest) -> SandboxSpec:
    """What every box is made from: `--sandbox-spec`, or your own fixture of this name."""
    return SandboxSpec.model_validate_json(str(request.config.getoption("--sandbox-spec")))


@pytest.fixture(scope="module")
def run_check(conformance_provider: SandboxProvider, conformance_spec: SandboxSpec) -> Generator[RunCheck]:
    """Runs a check on the backend under test, on an event loop of its own that lasts as long as the box."""
    session = Session(conformance_provider, conformance_spec)
    with asyncio.Runner() as runner:

        def run(check: Check) -> None:
            try:
                runner.run(session.run(check))
            except NotPromised as reason:
                pytest.skip(f"{conformance_provider.name}: {reason}")

        try:
            yield run
        finally:
            runner.run(session.close())
