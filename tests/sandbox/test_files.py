"""Files of a box: exact bytes under any name, and nothing that waits or leads out."""

from __future__ import annotations

import errno
import os
import random
import time

import anyio
import pytest

from codeenv.sandbox.api import Sandbox

pytestmark = pytest.mark.anyio

ODD_NAMES = [
    "plain",
    "a b/ü [1]'.py",
    'quo"te/$HOME/`id`/*',
    "new\nline",
    "\udcff\udc80 not utf-8",
    "-rf",
    "~",
    " leading and trailing ",
    "x" * 255,
    "/".join("d" * 50),
    "back\\slash",
    "😀/😀",
]


@pytest.mark.parametrize("name", ODD_NAMES, ids=[ascii(name)[:20] for name in ODD_NAMES])
async def test_any_name_holds_any_bytes(any_box: Sandbox, name: str) -> None:
    data = bytes(range(256))
    await any_box.write_file(name, data)
    assert await any_box.read_file(name) == data
    assert name in {entry.path for entry in await any_box.list_files()}
    result = await any_box.exec(["cat", "--", f"./{name}"])
    assert result.stdout == data
    await any_box.remove(name)
    with pytest.raises(FileNotFoundError):
        await any_box.read_file(name)


@pytest.mark.parametrize("size", [0, 1, 131_072, 1_048_575, 1_048_576, 1_048_577, 5_000_000])
async def test_any_size_is_exact(any_box: Sandbox, size: int) -> None:
    data = random.Random(size).randbytes(size)
    await any_box.write_file("f", b"longer than nothing")
    await any_box.write_file("f", data)
    assert await any_box.read_file("f") == data
    assert (await any_box.exec("wc -c < f")).stdout == b"%d\n" % size


async def test_a_long_text_is_exact(any_box: Sandbox) -> None:
    text = "".join(chr(random.Random(2).randrange(32, 0xD7FF)) for _ in range(1000)) * 320 + "\r\n\t'\"$`\\"
    assert len(text) > 300_000
    await any_box.write_file("text", text.encode())
    assert (await any_box.read_file("text")).decode() == text


async def test_modes_are_kept_unless_given(any_box: Sandbox) -> None:
    async def mode(path: str) -> str:
        return (await any_box.exec(["stat", "-c", "%a", path])).stdout.decode().strip()

    await any_box.write_file("f", b"1")
    assert await mode("f") == "644"
    await any_box.exec("chmod 751 f")
    await any_box.write_file("f", b"2")
    assert await mode("f") == "751"
    await any_box.write_file("f", b"3", mode=0o600)
    assert await mode("f") == "600"
    await any_box.write_file("deep/er/g", b"", mode=0o755)
    assert (await mode("deep/er/g"), await mode("deep")) == ("755", "755")


async def test_a_large_file_may_be_read_only(any_box: Sandbox) -> None:
    data = b"x" * 3_000_000
    await any_box.write_file("f", data, mode=0o444)
    assert await any_box.read_file("f") == data
    assert (await any_box.exec("stat -c %a f")).stdout == b"444\n"


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


@pytest.mark.parametrize("path", ["", "a\0b"], ids=["empty", "nul"])
async def test_what_is_no_path_is_a_value_error(any_box: Sandbox, path: str) -> None:
    for call in (
        any_box.read_file(path),
        any_box.write_file(path, b""),
        any_box.list_files(path),
        any_box.remove(path),
    ):
        with pytest.raises(ValueError, match="path"):
            await call


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


async def test_a_full_disk_is_an_os_error_and_what_is_removed_is_room_again(make_box) -> None:
    box = await make_box(disk_mb=4)
    with pytest.raises(OSError, match="Errno") as caught:
        await box.write_file("big", b"x" * 8_000_000)
    assert caught.value.errno in (errno.ENOSPC, errno.EFBIG)
    await box.remove("big")
    await box.write_file("small", b"x" * 3_000_000)
    assert len(await box.read_file("small")) == 3_000_000


async def test_a_process_file_has_its_content(any_box: Sandbox) -> None:
    assert (await any_box.read_file("/proc/version")).startswith(b"Linux version")
    assert b"processor" in await any_box.read_file("/proc/cpuinfo")
    with pytest.raises(OSError, match="Errno") as caught:
        await any_box.read_file("/proc/cpuinfo", limit=10)
    assert caught.value.errno == errno.EFBIG


@pytest.mark.parametrize(
    ("size", "limit", "fits"), [(100, 100, True), (101, 100, False), (0, 0, True), (10**6, 10, False)]
)
async def test_reading_over_the_limit_is_efbig(any_box: Sandbox, size: int, limit: int, fits: bool) -> None:
    await any_box.write_file("f", b"x" * size)
    if fits:
        assert len(await any_box.read_file("f", limit=limit)) == size
    else:
        with pytest.raises(OSError, match="Errno") as caught:
            await any_box.read_file("f", limit=limit)
        assert caught.value.errno == errno.EFBIG


async def test_a_huge_sparse_file_is_refused_at_once(any_box: Sandbox) -> None:
    await any_box.exec("truncate -s 400M sparse")
    started = time.monotonic()
    with pytest.raises(OSError, match="Errno") as caught:
        await any_box.read_file("sparse")
    assert caught.value.errno == errno.EFBIG
    assert time.monotonic() - started < 2


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


async def test_removing_a_tree_takes_links_but_not_what_they_point_to(any_box: Sandbox) -> None:
    await any_box.exec("mkdir -p keep tree/a/b tree/c; touch keep/x tree/a/b/y; ln -s ../keep tree/l; ln -s keep top")
    await any_box.remove("tree")
    await any_box.remove("top")
    assert [entry.path for entry in await any_box.list_files()] == ["keep", "keep/x"]


async def test_removing_bears_any_depth_and_any_mode(any_box: Sandbox) -> None:
    deep = "import os\nfor i in range(3000):\n os.mkdir('d' * 20); os.chdir('d' * 20)\nopen('leaf', 'w')"
    await any_box.exec("mkdir -p tree/shut/in; touch tree/shut/in/x; chmod 0 tree/shut/in tree/shut")
    assert (await any_box.exec(["python3", "-c", deep], cwd="tree")).exit_code == 0
    await any_box.remove("tree")
    assert await any_box.list_files() == []


async def test_a_listing_tells_kind_mode_and_size_in_order(any_box: Sandbox) -> None:
    await any_box.exec("mkdir b a; printf 12345 > b/f; chmod 750 b/f; chmod 700 a; ln -s b/f c; mkfifo z")
    listed = [
        (e.path, e.kind, e.mode if e.kind != "link" else 0, e.size if e.kind == "file" else 0)
        for e in await any_box.list_files()
    ]
    assert listed == [
        ("a", "directory", 0o700, 0),
        ("b", "directory", 0o755, 0),
        ("b/f", "file", 0o750, 5),
        ("c", "link", 0, 0),
    ]
    assert [entry.path for entry in await any_box.list_files("b")] == ["f"]


async def test_a_listing_is_bounded(any_box: Sandbox) -> None:
    await any_box.exec("mkdir many; cd many; seq 1 300 | xargs touch")
    assert len(await any_box.list_files("many", limit=300)) == 300
    with pytest.raises(OSError, match="Errno") as caught:
        await any_box.list_files("many", limit=299)
    assert caught.value.errno == errno.E2BIG


async def test_a_listing_of_nothing(any_box: Sandbox) -> None:
    with pytest.raises(FileNotFoundError):
        await any_box.list_files("missing")
    await any_box.write_file("f", b"")
    with pytest.raises(NotADirectoryError):
        await any_box.list_files("f")


async def test_a_listing_bears_what_it_may_not_read(box: Sandbox) -> None:
    await box.exec("mkdir -p open shut/in; touch open/x shut/y; chmod 0 shut")
    assert [entry.path for entry in await box.list_files()] == ["open", "open/x", "shut"]
    await box.exec("chmod 0 .")
    with pytest.raises(PermissionError):
        await box.list_files()
    assert os.path.isabs(box.scratch)
