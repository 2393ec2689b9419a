"""An environment is prepared once, kept, verified, remembered, and what boxes of its image find."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from codeenv.sandbox import make_provider
from codeenv.sandbox.api import SandboxError, SandboxSpec, UnsupportedSpec
from codeenv.sandbox.beam.image_cache import is_met
from codeenv.sandbox.beam.images import BuildFailed, Recipe, build, read_requirements
from codeenv.sandbox.beam.provider import BeamProvider
from codeenv.sandbox.packages import cache_root
from tests.beam_gateway.profiles import PROFILES, Conduct
from tests.beam_gateway.server import Gateway

pytestmark = pytest.mark.anyio
SPEC = SandboxSpec(python="3.11")
SCRIPT = "mkdir -p /tmp/prepared\nfor n in 1 2; do echo step $n; echo once >> /tmp/prepared/steps; done\n"


@pytest.fixture
def provider(gateway: Gateway, nobody: dict[str, str]) -> BeamProvider:
    return BeamProvider(host=gateway.host, port=gateway.port, token=gateway.token)


async def nothing_runs(gateway: Gateway) -> None:
    with anyio.fail_after(10):
        while gateway.active():
            await anyio.sleep(0.01)


def remembered() -> list[Path]:
    return list(cache_root().glob("beam-images/*"))


async def test_an_image_holds_what_the_script_made_and_nothing_of_ours(
    gateway: Gateway, provider: BeamProvider
) -> None:
    said: list[str] = []
    recipe = Recipe(("pytest>=7",), SCRIPT, check="grep -q once /tmp/prepared/steps")
    made = await build(provider, SPEC, recipe, said=said.append)
    assert made.id.startswith("id:")
    assert "pytest" in made.packages
    assert not made.cached
    assert said[0] == "preparing"
    assert said[-1] == "verifying"
    image = gateway.store.images[made.id.removeprefix("id:")]
    assert [entry.path for entry in image.content["/tmp"] if entry.kind == "file"] == ["prepared/steps"]
    await nothing_runs(gateway)

    async with provider.create(SPEC.model_copy(update={"image": made.id})) as box:
        assert await box.read_file("/tmp/prepared/steps") == b"once\nonce\n"
        assert "prepared" not in [entry.path for entry in await box.list_files()]

    creates = gateway.calls["CreatePod"]
    other = BeamProvider(host=gateway.host, port=gateway.port, token=gateway.token)
    again = await build(other, SPEC, recipe)
    assert (again.id, again.cached, gateway.calls["CreatePod"]) == (made.id, True, creates)
    assert (await build(other, SPEC, recipe, again=True)).id != made.id
    gateway.store.images.clear()


async def test_two_in_one_second_are_two(gateway: Gateway, provider: BeamProvider) -> None:
    ids: dict[str, str] = {}

    async def one(text: str) -> None:
        recipe = Recipe(script=f"echo {text} > /tmp/text", check=f"grep {text} /tmp/text")
        ids[text] = (await build(provider, SPEC, recipe)).id

    async with anyio.create_task_group() as group:
        for text in ("first", "second"):
            group.start_soon(one, text)
    assert len(set(ids.values())) == 2


@pytest.mark.parametrize(
    ("recipe", "says"),
    [
        (Recipe(script="echo about to fail\nexit 3"), r"exit code 3: about to fail"),
        (Recipe(script=":", check="echo not there; false"), r"check failed in the image with exit code 1: not there"),
    ],
    ids=["script", "check"],
)
async def test_what_fails_is_not_remembered(
    recipe: Recipe, says: str, gateway: Gateway, provider: BeamProvider
) -> None:
    with pytest.raises(BuildFailed, match=says):
        await build(provider, SPEC, recipe)
    await nothing_runs(gateway)
    assert remembered() == []


async def test_a_lost_reply_runs_the_script_once(gateway: Gateway, provider: BeamProvider) -> None:
    import grpc

    for skip in (0, 1, 2, 3):
        gateway.faults.add("SandboxExec", skip=skip, after=True, status=grpc.StatusCode.UNAVAILABLE)
    recipe = Recipe(script="echo once >> /tmp/steps; sleep 0.3", check='test "$(cat /tmp/steps)" = once')
    await build(provider, SPEC, recipe)


async def test_an_image_that_beam_does_not_make_is_an_error(gateway: Gateway, provider: BeamProvider) -> None:
    gateway.faults.add("SandboxCreateImageFromFilesystem", answer={"ok": False, "error_msg": "no room"})
    with pytest.raises(SandboxError, match="did not make an image: no room"):
        await build(provider, SPEC, Recipe(script=":"))
    await nothing_runs(gateway)


async def test_a_token_in_the_box_is_not_kept_in_an_image(gateway: Gateway, provider: BeamProvider) -> None:
    gateway.conduct = Conduct(profile=PROFILES["august-2026"])
    before = gateway.calls["SandboxCreateImageFromFilesystem"]
    with pytest.raises(SandboxError, match="can read the account's Beam token"):
        await build(provider, SPEC, Recipe(script=":"))
    assert gateway.calls["SandboxCreateImageFromFilesystem"] == before


async def test_secrets_are_not_kept_in_an_image(gateway: Gateway, nobody: dict[str, str]) -> None:
    provider = BeamProvider(host=gateway.host, port=gateway.port, token=gateway.token, secrets=["KEY"])
    with pytest.raises(UnsupportedSpec, match="would be kept"):
        await build(provider, SPEC, Recipe(script=":"))


async def test_packages_that_an_image_lacks_are_an_error_at_load_time(
    gateway: Gateway, provider: BeamProvider, caplog: pytest.LogCaptureFixture
) -> None:
    made = await build(provider, SPEC, Recipe(("pytest",)))
    of_image = SPEC.model_copy(update={"image": made.id})
    await anyio.to_thread.run_sync(provider.check, of_image.model_copy(update={"packages": ("pytest>=7",)}))
    with pytest.raises(UnsupportedSpec, match="lacks numpy: give `codeenv image build` --requirement"):
        await anyio.to_thread.run_sync(provider.check, of_image.model_copy(update={"packages": ("pytest", "numpy")}))
    assert caplog.text == ""
    remembered()[0].unlink()
    await anyio.to_thread.run_sync(provider.check, of_image.model_copy(update={"packages": ("numpy",)}))
    assert "must have numpy" in caplog.text


@pytest.mark.parametrize(
    ("requirement", "met"),
    [
        ("My.Package", True),
        ("my-package>=1.2", True),
        ("my_package[extra]<1", False),
        ("another", False),
        ("another; python_version < '3'", True),
        ("early>=2.0rc1", True),
    ],
)
def test_whether_packages_meet_a_requirement(requirement: str, met: bool) -> None:
    assert is_met(requirement, {"My_Package": "1.2", "early": "2.0rc1"}) is met


def test_a_requirements_file_is_read() -> None:
    text = "# ours\n\nnumpy>=1.26 # new\nruff==0.1; python_version > '3'\n"
    assert read_requirements(text) == ("numpy>=1.26", 'ruff==0.1; python_version > "3"')


@pytest.mark.parametrize("line", ["-r other.txt", "--index-url https://example.com", "two words", "==1"])
def test_what_is_no_plain_requirement_is_an_error(line: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        read_requirements(line)


async def test_the_command_prints_an_id_that_boxes_take(
    gateway: Gateway, somebody: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "setup.sh").write_text("echo step one; echo 21 > /tmp/input\n")
    command = [sys.executable, "-m", "codeenv", "image", "build", "--script", str(tmp_path / "setup.sh")]
    done = await anyio.run_process(command, env=somebody, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    made = done.stdout.decode().strip()
    again = await anyio.run_process([*command, "--json"], env=somebody, stdin=subprocess.DEVNULL)
    assert json.loads(again.stdout)["id"] == made
    assert json.loads(again.stdout)["cached"] is True
    assert gateway.token.encode() not in done.stdout + done.stderr + again.stdout
    provider = make_provider("beam", host=gateway.host, port=gateway.port, token=gateway.token)
    async with provider.create(SandboxSpec(image=made)) as box:
        assert await box.read_file("/tmp/input") == b"21\n"


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        ([], 2, b"nothing to prepare"),
        (["--script", "/nonexistent"], 2, b"/nonexistent"),
        (["--requirement", "-e ."], 2, b"options are not understood"),
        (["--requirement", "pytest"], 1, b"not set up"),
    ],
    ids=["nothing", "no-script", "option", "no-account"],
)
async def test_wrong_usage(arguments: list[str], code: int, says: bytes, nobody: dict[str, str]) -> None:
    command = [sys.executable, "-m", "codeenv", "image", "build", *arguments]
    done = await anyio.run_process(command, env=nobody, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == code
    assert says in done.stderr
