"""The unmodified SDK passes its own calls against the gateway, so that the gateway is true to it."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import provider_or_skip

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(autouse=True)
def nobody_to_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing setting fails."""
    monkeypatch.setenv("BETA9_NO_INPUT", "1")


@pytest.fixture(scope="module")
def gateway() -> Iterator[None]:
    """A gateway in a process of its own, that the SDK's one channel goes to."""
    provider_or_skip("bubblewrap")
    hook = sys.excepthook
    from beta9 import terminal
    from beta9.abstractions.base import get_channel, set_channel, unset_channel
    from beta9.config import ConfigContext

    sys.excepthook = hook  # the SDK takes it
    terminal._console.quiet = terminal._error_console.quiet = True
    command = [sys.executable, "-m", "tests.beam_gateway", "--conduct", '{"images_exist": false}']
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdin
        place = json.loads(process.stdout.readline())
        set_channel(context=ConfigContext(token=place["token"], gateway_host=place["host"], gateway_port=place["port"]))
        yield
        get_channel().close()
        unset_channel()
        process.stdin.close()
        assert process.wait(30) == 0


@pytest.fixture(scope="module")
def make(gateway: None) -> Iterator[Any]:
    """`make(memory=512, ...)`: a new box of the SDK's, terminated at the end."""
    from beta9 import Image, Sandbox

    with ExitStack() as made:

        def make(**settings: Any) -> Any:
            settings = {"image": Image(python_version="python3.11"), "memory": 512, **settings}
            return made.enter_context(Sandbox(**settings).create())

        yield make


@pytest.fixture(scope="module")
def instance(make: Any) -> Any:
    return make(env={"COLOUR": "blue"}, keep_warm_seconds=120)


@pytest.fixture
def local(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    path.write_bytes(bytes(range(256)) * 40_000)  # more than two of the SDK's parts
    return path


def test_create_says_which_box_it_is(instance: Any) -> None:
    assert instance.ok
    assert instance.container_id.startswith(f"sandbox-{instance.stub_id}-")
    assert instance.status()[0] == -1  # pending still, or running
    assert instance.poll() is None


@pytest.mark.parametrize(
    ("command", "code", "out", "err"),
    [
        (("sh", "-c", "echo out; echo err >&2; exit 3"), 3, "out\n", "err\n"),
        (("echo", "two words", "$HOME", "it's"), 0, "two words $HOME it's\n", ""),
        (("printenv", "COLOUR"), 0, "blue\n", ""),
        (("pwd",), 0, "/workspace\n", ""),
        (("sh", "-c", "kill -9 $$"), 137, "", ""),
    ],
    ids=["streams", "literal", "variable", "directory", "signal"],
)
def test_a_command(instance: Any, command: tuple[str, ...], code: int, out: str, err: str) -> None:
    process = instance.process.exec(*command)
    assert process.wait(30) == code
    assert (process.stdout.read(), process.stderr.read()) == (out, err)
    assert process.stdout.read() == ""


def test_a_directory_and_variables(instance: Any) -> None:
    process = instance.process.exec("sh", "-c", "pwd; echo $A", cwd="/tmp", env={"A": "b"})
    assert (process.wait(30), process.stdout.read()) == (0, "/tmp\nb\n")


def test_standard_input(instance: Any) -> None:
    process = instance.process.exec("sha256sum", stdin=b"\0\xff" * 1000)
    assert process.wait(30) == 0
    assert process.stdout.read().split()[0] == hashlib.sha256(b"\0\xff" * 1000).hexdigest()


@pytest.mark.parametrize("seconds", [0, 1], ids=["inline", "waited-for"])
def test_code(instance: Any, seconds: int) -> None:
    done = instance.process.run_code(f"import time; time.sleep({seconds}); print(6 * 7); raise SystemExit(5)")
    assert (done.exit_code, done.stdout, done.stderr) == (5, "42\n", "")


def test_a_stream_of_lines(instance: Any) -> None:
    process = instance.process.exec("sh", "-c", "for n in 1 2 3; do echo $n; sleep 0.1; done; echo end >&2")
    assert list(process.stdout) == ["1\n", "2\n", "3\n"]
    assert sorted(process.logs) == ["end\n"]


def test_a_process_is_listed_and_killed(make: Any) -> None:
    # A box of its own: the SDK cannot read a list with a quote in one of its commands.
    process = make().process.exec("sleep", "600")
    listed = process.sandbox_instance.process.list_processes()[process.pid]
    assert (listed.args[0].rpartition("/")[2], listed.args[1:], listed.cwd) == ("sleep", ["600"], "/workspace")
    assert listed.exit_code == -1
    process.kill()
    assert process.wait(30) == 137
    assert process.status() == (137, "exited")


def test_what_cannot_be_run_is_an_error(instance: Any) -> None:
    from beta9.exceptions import SandboxProcessError

    with pytest.raises(SandboxProcessError, match="executable file not found"):
        instance.process.exec("nonesuch")


def test_files_go_and_come_back(instance: Any, local: Path, tmp_path: Path) -> None:
    instance.fs.upload_file(str(local), "/workspace/deep/data")
    instance.fs.download_file("/workspace/deep/data", str(tmp_path / "back"))
    assert (tmp_path / "back").read_bytes() == local.read_bytes()
    instance.fs.write_bytes("deep/run", b"#!/bin/sh\necho ran\n", mode=0o755)
    assert instance.fs.read_text("deep/run") == "#!/bin/sh\necho ran\n"
    process = instance.process.exec("deep/run")
    assert (process.wait(30), process.stdout.read()) == (0, "ran\n")
    info = instance.fs.stat_file("deep/run")
    assert (info.name, info.size, info.permissions & 0o777, info.is_dir) == ("run", 19, 0o755, False)
    assert {info.name: info.is_dir for info in instance.fs.list_files("deep")} == {"data": False, "run": False}
    assert instance.fs.stat_file("deep").is_dir
    instance.fs.delete_file("deep/data")
    instance.fs.remove("deep")
    assert "deep" not in [info.name for info in instance.fs.list_files("/workspace")]


def test_a_file_that_is_not_there(instance: Any) -> None:
    from beta9.exceptions import SandboxFileSystemError

    with pytest.raises(SandboxFileSystemError, match="no such file or directory"):
        instance.fs.read_bytes("none")
    with pytest.raises(TimeoutError):
        instance.fs.wait_for("none", timeout=0.2)


def test_text_is_found_and_replaced(instance: Any) -> None:
    instance.fs.write_text("text/one", "alpha\nbeta $1 beta\n")
    (found,) = instance.fs.find_in_files("text", "b.ta")
    assert found.path == "/workspace/text/one"
    places = [(hit.range.start.line, hit.range.start.column, hit.range.end.column) for hit in found.matches]
    assert places == [(2, 1, 4), (2, 9, 12)]
    instance.fs.replace_in_files("text", "$1", "$2")
    instance.fs.replace_in_files("text", "(al)pha", "${1}pine", regex=True)
    assert instance.fs.read_text("text/one") == "alpine\nbeta $2 beta\n"


def test_a_directory_is_made(instance: Any) -> None:
    instance.fs.create_directory("made")
    assert instance.fs.stat_file("made").is_dir


def test_connect_finds_the_box(instance: Any) -> None:
    from beta9 import Sandbox

    again = Sandbox().connect(instance.container_id)
    assert again.stub_id == instance.stub_id
    assert again.process.run_code("print(1)").stdout == "1\n"


def test_an_image_of_a_box_starts_another(instance: Any, make: Any) -> None:
    from beta9 import Image

    instance.fs.write_text("kept", "yes")
    other = make(image=Image.from_id(instance.create_image_from_filesystem()))
    assert other.fs.read_text("kept") == "yes"
    assert other.stub_id != instance.stub_id


def test_an_image_is_built_once(make: Any) -> None:
    from beta9 import Image

    image = Image(python_version="python3.12", python_packages=["pytest"]).add_commands(["true"])
    assert not image.exists()[0]
    assert make(image=image).process.run_code("print(3)").stdout == "3\n"
    assert image.exists()[0]


def test_a_box_with_a_volume_and_no_network(make: Any) -> None:
    from beta9 import Volume

    made = make(volumes=[Volume(name="data", mount_path="./data")], block_network=True)
    assert made.process.run_code("print(4)").stdout == "4\n"


def test_an_image_that_is_not_there(make: Any) -> None:
    from beta9 import Image
    from beta9.exceptions import ImageBuildError

    with pytest.raises(ImageBuildError, match="was not found"):
        make(image=Image.from_id("none"))


def test_the_time_to_live(make: Any) -> None:
    made = make()
    assert made.process.run_code("").exit_code == 0
    made.update_ttl(1)
    assert made.wait(30) == 558


def test_terminate_ends_the_box(make: Any) -> None:
    made = make()
    made.process.exec("sleep", "600")
    assert made.terminate()
    assert made.wait(30) == 560
    made.terminated = False
    assert not made.terminate()  # there is none of that name any more


@pytest.mark.anyio
async def test_the_async_face(instance: Any) -> None:
    process = await instance.aio.process.exec("sh", "-c", "echo a; exit 2")
    assert await process.wait() == 2
    assert (await instance.aio.process.run_code("print(2)")).stdout == "2\n"
