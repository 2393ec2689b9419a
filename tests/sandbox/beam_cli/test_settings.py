"""Settings of the sandbox reach it from `load_environment`, and their faults are faults of loading."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest
from env_support import double_task, write_set

from codeenv import load_environment
from codeenv.sandbox.beam.provider import BeamProvider
from tests.beam_gateway.server import Gateway

pytestmark = pytest.mark.anyio


async def test_settings_reach_the_provider_and_the_image_its_boxes(
    gateway: Gateway, nobody: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BETA9_TOKEN", gateway.token)
    settings = {"host": gateway.host, "port": gateway.port, "name": "ours"}
    dataset = write_set(tmp_path, [double_task()])

    def load() -> Any:
        return load_environment(dataset, sandbox="beam", sandbox_settings=settings, image="example/image:1")

    env = await anyio.to_thread.run_sync(load)
    assert isinstance(env.provider, BeamProvider)
    assert str(env.provider.account) == f"{gateway.host}:{gateway.port}"
    assert env.spec.image == "example/image:1"
    (stub,) = [stub for stub in gateway.store.stubs.values() if stub.request.app_name == "ours"]
    assert stub.request.image_id


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"token": "hush"}, "'token' would be saved with the results"),
        ({"prot": 1}, "unknown settings of sandbox 'beam': prot; valid: host, port"),
        ({"port": "hush"}, "port: Input should be a valid integer"),
    ],
    ids=["token", "unknown", "type"],
)
def test_faults_of_settings(settings: Mapping[str, Any], says: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        load_environment("starter", sandbox="beam", sandbox_settings=settings)
    assert says in str(caught.value)
    assert "hush" not in str(caught.value)
