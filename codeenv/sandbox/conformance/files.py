"""Files: exact bytes under any name, modes, and the builtin errors."""

from __future__ import annotations

import errno
import hashlib
import random

from codeenv.sandbox.api import Sandbox
from codeenv.sandbox.conformance.support import failure, in_time

_NAMES = [
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
    "tab\t\r\x1b[2K",
]


async def _exact(box: Sandbox, size: int) -> None:
    data = random.Random(size).randbytes(size)
    await box.write_file("f", b"what was there before")
    await box.write_file("f", data)
    assert await box.read_file("f") == data
    seen = (await box.exec("sha256sum f")).stdout.split()[0].decode()
    assert seen == hashlib.sha256(data).hexdigest()


async def check_an_empty_file_is_exact(box: Sandbox) -> None:
    """A file of 0 bytes is written, over a longer one, and read."""
    await _exact(box, 0)


async def check_a_byte_is_exact(box: Sandbox) -> None:
    """Every single byte is written and read as it is."""
    for data in (b"\0", b"\n", b"\xff", b"\r", b"x"):
        await box.write_file("f", data)
        assert await box.read_file("f") == data
    await _exact(box, 1)


async def check_a_megabyte_is_exact(box: Sandbox) -> None:
    """Files of 1 MiB, and a byte more or less, are written and read byte for byte."""
    for size in (1_048_575, 1_048_576, 1_048_577):
        await _exact(box, size)


async def check_five_megabytes_are_exact(box: Sandbox) -> None:
    """A file of 5 MiB is written and read byte for byte."""
    await _exact(box, 5 * 1024 * 1024)


async def check_a_long_text_is_exact(box: Sandbox) -> None:
    """300,000 characters with every kind of quote and line end, and no last one, are read as they were written."""
    words = ["EOF\n", "'", '"', "`x`", "</tool_call>", "\r\n", "\t", "$(id)", "\\", "ü€😀", "\r", "{{ x }}", "0" * 70]
    chance = random.Random(5)
    text = "".join(chance.choice(words) for _ in range(45_000)) + "end"
    assert len(text) > 300_000
    await box.write_file("text", text.encode())
    assert (await box.read_file("text")).decode() == text


async def check_any_name_holds_any_bytes(box: Sandbox) -> None:
    """Names with quotes, spaces, line ends, undecodable bytes, a leading dash, 255 bytes, 50 parents are names."""
    data = bytes(range(256))
    for name in _NAMES:
        await box.write_file(name, data)
        assert await box.read_file(name) == data, name
        assert (await box.exec(["cat", "--", f"./{name}"])).stdout == data, name
        assert name in {entry.path for entry in await box.list_files()}, name
        await box.remove(name)
        await failure(box.read_file(name), FileNotFoundError)


async def check_parents_are_made(box: Sandbox) -> None:
    """Writing makes the parents of a file, for others to read as `mkdir` does."""
    await box.write_file("deep/er/still/f", b"x")
    assert (await box.exec("cat deep/er/still/f; stat -c ' %a' deep/er")).stdout == b"x 755\n"


async def check_modes_are_kept_unless_given(box: Sandbox) -> None:
    """A new file has mode 644, an old one keeps its mode, and a `mode` that is given is the file's, to the bit."""

    async def mode() -> bytes:
        return (await box.exec("stat -c %a f")).stdout.strip()

    await box.write_file("f", b"1")
    assert await mode() == b"644"
    await box.exec("chmod 751 f")
    await box.write_file("f", b"2")
    assert await mode() == b"751"
    for wanted in (0o600, 0o755, 0o444, 0o664):
        await box.exec("chmod 600 f")
        await box.write_file("f", b"3", mode=wanted)
        assert await mode() == b"%o" % wanted
    assert await box.read_file("f") == b"3"


async def check_a_written_program_runs(box: Sandbox) -> None:
    """A script that is written with mode 755 can be run at once."""
    await box.write_file("bin/run", b"#!/bin/sh\necho ran $1\n", mode=0o755)
    assert (await box.exec(["bin/run", "x"])).stdout == b"ran x\n"


async def check_a_large_file_may_be_read_only(box: Sandbox) -> None:
    """A mode without the right to write does not hinder a large write."""
    data = b"x" * 3_000_000
    await box.write_file("f", data, mode=0o444)
    assert await box.read_file("f") == data
    assert (await box.exec("stat -c %a f")).stdout == b"444\n"


async def check_commands_and_calls_see_the_same_files(box: Sandbox) -> None:
    """What a command writes can be read at once, and what is written a command can read."""
    await box.exec("printf made > by-command")
    assert await box.read_file("by-command") == b"made"
    await box.write_file("by-call", b"made too")
    assert (await box.exec("cat by-call")).stdout == b"made too"


async def check_paths_are_below_workdir_or_absolute(box: Sandbox) -> None:
    """A relative path is below `workdir`, an absolute one is the box's, and `..` is what it is."""
    await box.write_file("d/f", b"x")
    for path in ("d/f", "./d//f", "d/../d/f", f"{box.workdir}/d/f"):
        assert await box.read_file(path) == b"x", path
    place = f"{box.scratch}/conformance file"
    await box.write_file(place, b"y")
    assert (await box.exec(["cat", place])).stdout == b"y"
    await box.remove(place)


async def check_scratch_is_outside_workdir(box: Sandbox) -> None:
    """`scratch` is a directory of the box that can be written and is not below `workdir`, nor above it."""
    assert box.scratch.startswith("/")
    assert not f"{box.scratch}/".startswith(f"{box.workdir}/")
    assert not f"{box.workdir}/".startswith(f"{box.scratch}/")
    assert (await box.exec(["test", "-d", box.scratch, "-a", "-w", box.scratch])).exit_code == 0


async def check_what_is_missing_is_file_not_found(box: Sandbox) -> None:
    """Reading or removing what is not there, or points to nothing, is FileNotFoundError that names the path."""
    await box.exec("ln -s nowhere/at/all dangling")
    for path in ("missing", "missing/deep", "dangling", "dangling/x"):
        error = await failure(box.read_file(path), FileNotFoundError)
        assert error.filename == path, error
    for path in ("missing", "missing/deep", "dangling/x"):
        await failure(box.remove(path), FileNotFoundError)


async def check_a_directory_is_not_read_or_written(box: Sandbox) -> None:
    """Reading or writing a directory is IsADirectoryError that names the path."""
    await box.exec("mkdir folder")
    for path in ("folder", "."):
        assert (await failure(box.read_file(path), IsADirectoryError)).filename == path
    assert (await failure(box.write_file("folder", b"x"), IsADirectoryError)).filename == "folder"


async def check_a_file_is_no_directory(box: Sandbox) -> None:
    """A path that goes through a file is NotADirectoryError that names the path."""
    await box.write_file("file", b"x")
    assert (await failure(box.read_file("file/x"), NotADirectoryError)).filename == "file/x"
    assert (await failure(box.read_file("file/"), NotADirectoryError)).filename == "file/"
    assert (await failure(box.write_file("file/x", b""), NotADirectoryError)).filename == "file/x"
    await failure(box.remove("file/x"), NotADirectoryError)
    assert await box.read_file("file") == b"x"


async def check_links_are_followed_inside(box: Sandbox) -> None:
    """Reading and writing follow links inside the box, of files and of directories."""
    await box.write_file("real/f", b"x")
    await box.exec("ln -s real folder; ln -s real/f file; ln -s real/new later")
    assert await box.read_file("folder/f") == await box.read_file("file") == b"x"
    await box.write_file("file", b"y")
    await box.write_file("folder/g", b"z")
    await box.write_file("later", b"new")
    assert await box.read_file("real/f") == b"y"
    assert await box.read_file("real/g") == b"z"
    assert await box.read_file("real/new") == b"new"
    assert (await box.exec("[ -L file ] && [ -L folder ] && [ -L later ]")).exit_code == 0


async def check_a_circle_of_links_is_an_error(box: Sandbox) -> None:
    """A link to itself is an OSError, to read and to write, and can be removed."""
    await box.exec("ln -s loop loop")
    assert (await failure(box.read_file("loop"), OSError)).errno == errno.ELOOP
    assert (await failure(box.write_file("loop", b"x"), OSError)).errno == errno.ELOOP
    await box.remove("loop")
    assert await box.list_files() == []


async def check_reading_over_the_limit_is_too_big(box: Sandbox) -> None:
    """A file of exactly the limit is read; a byte more is OSError with EFBIG."""
    for size, limit, fits in ((100, 100, True), (101, 100, False), (0, 0, True), (1, 0, False), (3_000_000, 10, False)):
        await box.write_file("f", b"x" * size)
        if fits:
            assert len(await box.read_file("f", limit=limit)) == size
        else:
            error = await failure(box.read_file("f", limit=limit), OSError)
            assert error.errno == errno.EFBIG, error


async def check_a_sparse_file_is_refused_at_once(box: Sandbox) -> None:
    """A file that only claims to be huge is EFBIG before anything is read."""
    await box.exec("truncate -s 400M sparse")
    with in_time():
        assert (await failure(box.read_file("sparse"), OSError)).errno == errno.EFBIG


async def check_a_file_of_the_kernel_is_read(box: Sandbox) -> None:
    """A file of /proc, whose size is 0, has its content."""
    assert await box.read_file("/proc/self/stat")
    assert b"Linux" in await box.read_file("/proc/version")


async def check_a_fifo_or_socket_neither_hangs_nor_answers(box: Sandbox) -> None:
    """A FIFO, one that is written to as well, and a socket are OSError to read and write, and can be removed."""
    await box.exec(
        "mkfifo fifo written; (yes > written &) ; ln -s fifo link\n"
        """python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("socket")'"""
    )
    with in_time(10):
        for path in ("link", "fifo", "written", "socket"):
            await failure(box.read_file(path), OSError)
            await failure(box.write_file(path, b"data"), OSError)
            await box.remove(path)
    assert (await box.exec("ls -A")).stdout == b""


async def check_what_is_no_path_is_a_value_error(box: Sandbox) -> None:
    """An empty path, and one with a NUL, are ValueError."""
    for path in ("", "a\0b"):
        await failure(box.read_file(path), ValueError)
        await failure(box.write_file(path, b""), ValueError)
        await failure(box.list_files(path), ValueError)
        await failure(box.remove(path), ValueError)


async def check_a_name_that_is_too_long_is_an_error(box: Sandbox) -> None:
    """A name of 256 bytes and a path of more than 4,096 are OSError, to read and to write."""
    for path in ("x" * 256, "y/" * 2500 + "f"):
        await failure(box.read_file(path), OSError)
        await failure(box.write_file(path, b"x"), OSError)
    assert (await box.exec("echo fine")).stdout == b"fine\n"
