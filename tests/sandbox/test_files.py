"""Files of a box: exact bytes under any name, and nothing that waits or leads out."""

from __future__ import annotations

import errno
import os

import anyio
import pytest

from codeenv.sandbox.api import Sandbox

pytestmark = pytest.mark.anyio


async def test_a_read_only_file_is_refused(box: Sandbox) -> None:
    await box.write_file("f", b"x", mode=0o444)
    with pytest.raises(PermissionError):
        await box.write_file("f", b"y")
    assert await box.read_file("f") == b"x"


CASES = [
    ("missing", FileNotFoundError, FileNotFoundError),
    ("missing/deep", FileNotFoundError, FileNotFoundError),
    ("file/below", NotADirectoryError, NotADirectoryError),
    ("file/below/deep", NotADirectoryError, NotADirectoryError),
    ("file/", NotADirectoryError, NotADirectoryError),
    ("folder", IsADirectoryError, None),
    (".", IsADirectoryError, OSError),
    ("loop", OSError, None),
    ("dangling", FileNotFoundError, None),
    ("dangling/x", FileNotFoundError, FileNotFoundError),
    ("x" * 256, OSError, OSError),
    ("y/" * 2500, OSError, OSError),
]


@pytest.mark.parametrize(("path", "reading", "removing"), CASES, ids=[case[0][:20] for case in CASES])
async def test_what_is_not_there_is_the_builtin_error_that_names_it(
    any_box: Sandbox, path: str, reading: type[OSError], removing: type[OSError] | None
) -> None:
    await any_box.exec("touch file; mkdir folder; ln -s loop loop; ln -s nowhere/at/all dangling")
    with pytest.raises(reading) as caught:
        await any_box.read_file(path)
    assert caught.value.filename == path
    if removing is None:
        await any_box.remove(path)
        assert path not in {entry.path for entry in await any_box.list_files()}
    else:
        with pytest.raises(removing):
            await any_box.remove(path)


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("file/below", NotADirectoryError),
        ("folder", IsADirectoryError),
        ("loop", OSError),
        ("dangling", FileNotFoundError),
        ("x" * 256, OSError),
        ("/proc/x", OSError),
        ("/dev/null/x", NotADirectoryError),
    ],
    ids=str,
)
async def test_what_cannot_be_written_is_the_builtin_error(any_box: Sandbox, path: str, error: type[OSError]) -> None:
    await any_box.exec("touch file; mkdir folder; ln -s loop loop; ln -s nowhere/at/all dangling")
    with pytest.raises(error) as caught:
        await any_box.write_file(path, b"data")
    assert caught.value.filename == path
    assert (await any_box.exec("find . | sort | tr '\n' ' '")).stdout == b". ./dangling ./file ./folder ./loop "


# --- what is no plain file -------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["fifo", "read-fifo", "written-fifo", "link-to-fifo", "socket"])
async def test_a_fifo_or_socket_neither_hangs_nor_answers(any_box: Sandbox, path: str) -> None:
    await any_box.exec(
        """mkfifo fifo read-fifo written-fifo; ln -s fifo link-to-fifo
        (cat read-fifo > got &) ; (yes > written-fifo &)
        python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("socket")'"""
    )
    with anyio.fail_after(5):
        with pytest.raises(OSError, match="Errno") as caught:
            await any_box.read_file(path)
        assert caught.value.errno in (errno.EINVAL, errno.ENXIO)
        with pytest.raises(OSError, match="Errno") as caught:
            await any_box.write_file(path, b"data")
        assert caught.value.errno in (errno.EINVAL, errno.ENXIO)
        await any_box.remove(path)
    assert path not in {entry.path for entry in await any_box.list_files()}


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/full", "/dev/null", "/dev/random", "/dev/tty", "/dev/ptmx"])
async def test_a_device_is_refused(box: Sandbox, device: str) -> None:
    with anyio.fail_after(5):
        with pytest.raises(OSError, match="Errno"):
            await box.read_file(device)
        with pytest.raises(OSError, match="Errno"):
            await box.write_file(device, b"x")
        await box.exec(["ln", "-s", device, "link"])
        with pytest.raises(OSError, match="Errno"):
            await box.read_file("link")


async def test_a_process_file_has_its_content(any_box: Sandbox) -> None:
    assert (await any_box.read_file("/proc/version")).startswith(b"Linux version")
    assert b"processor" in await any_box.read_file("/proc/cpuinfo")
    with pytest.raises(OSError, match="Errno") as caught:
        await any_box.read_file("/proc/cpuinfo", limit=10)
    assert caught.value.errno == errno.EFBIG


# --- where a path leads ----------------------------------------------------------------------------------------


async def test_dots_and_absolute_paths_and_links_resolve_in_the_box(box: Sandbox) -> None:
    await box.write_file("../tmp/up", b"up")
    assert await box.read_file("/tmp/up") == b"up"
    await box.write_file("../../../../../tmp/top", b"top")
    assert await box.read_file("/tmp/top") == b"top"
    await box.exec("ln -s /tmp outside; ln -s outside/new later; ln -s / root")
    await box.write_file("outside/through", b"through")
    assert await box.read_file("/tmp/through") == b"through"
    await box.write_file("later", b"dangling no more")
    assert await box.read_file("/tmp/new") == b"dangling no more"
    assert await box.read_file("root/tmp/new") == b"dangling no more"
    assert await box.read_file("/etc/passwd") == await box.read_file("root/etc/passwd")
    assert b"sandbox" in await box.read_file("/etc/hosts")


@pytest.mark.parametrize(
    "path",
    ["/proc/1/root{0}", "/proc/self/root{0}", "/../../..{0}", "/proc/1/cwd/../../../..{0}", "/proc/self/fd/../root{0}"],
)
async def test_no_path_leads_to_the_hosts_files(box: Sandbox, path: str, tmp_path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    with pytest.raises(OSError, match="Errno"):
        await box.read_file(path.format(secret))
    with pytest.raises(OSError, match="Errno"):
        await box.list_files(path.format(tmp_path))
    target = path.format("/etc/passwd")
    with pytest.raises(OSError, match="Errno"):
        await box.write_file(target, b"mine")
    await box.exec(["ln", "-s", path.format(secret), "link"])
    with pytest.raises(OSError, match="Errno"):
        await box.read_file("link")


async def test_the_hosts_file_under_the_same_name_is_another(box: Sandbox, tmp_path) -> None:
    mine = tmp_path / "name"
    mine.write_text("the host's")
    await box.write_file(str(mine), b"the box's") if str(mine).startswith("/tmp/") else pytest.skip(
        "TMPDIR is elsewhere"
    )
    assert mine.read_text() == "the host's"
    assert await box.read_file(str(mine)) == b"the box's"


@pytest.mark.parametrize(
    "path", ["/usr/x", "/etc/x", "/x", "/dev/x", "/usr/bin/bash", "/etc/passwd", "/bin/sh", "/sys/x"]
)
async def test_the_system_cannot_be_written(box: Sandbox, path: str) -> None:
    with pytest.raises(OSError, match="Errno"):
        await box.write_file(path, b"x")


# --- removing and listing ---------------------------------------------------------------------------------------


async def test_a_listing_bears_what_it_may_not_read(box: Sandbox) -> None:
    await box.exec("mkdir -p open shut/in; touch open/x shut/y; chmod 0 shut")
    assert [entry.path for entry in await box.list_files()] == ["open", "open/x", "shut"]
    await box.exec("chmod 0 .")
    with pytest.raises(PermissionError):
        await box.list_files()
    assert os.path.isabs(box.scratch)
