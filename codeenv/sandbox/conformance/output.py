"""What a command prints: every byte, within bounds."""

from __future__ import annotations

import random
import uuid

from codeenv.sandbox.api import Sandbox
from codeenv.sandbox.conformance.support import failure, until_ready

_WIDE = "😀é€ü"


async def check_any_bytes_come_back(box: Sandbox) -> None:
    """Output is bytes: NULs, invalid UTF-8 and carriage returns come back as they were."""
    code = "import sys; b = bytes(range(256)) * 40; sys.stdout.buffer.write(b); sys.stderr.buffer.write(b[::-1])"
    result = await box.exec(["python3", "-c", code])
    assert result.stdout == bytes(range(256)) * 40, result
    assert result.stderr == (bytes(range(256)) * 40)[::-1], result


async def check_invalid_text_comes_back(box: Sandbox) -> None:
    """Broken UTF-8 (a lone byte, a cut character, a surrogate) comes back as it was."""
    result = await box.exec(r"printf '\xff\xfe\x00|\xf0\x9f\x98|\xed\xa0\x80|\xc3'")
    assert result.stdout == b"\xff\xfe\x00|\xf0\x9f\x98|\xed\xa0\x80|\xc3", result


async def check_characters_that_come_in_pieces_are_whole(box: Sandbox) -> None:
    """Wide characters that are written byte by byte, over more than a second, come back whole."""
    data = (_WIDE * 3).encode()
    code = "import os, sys, time\nfor b in sys.argv[1].encode(): os.write(1, bytes([b])); time.sleep(0.04)"
    result = await box.exec(["python3", "-c", code, _WIDE * 3])
    assert result.stdout == data, result


async def check_much_wide_text_is_whole(box: Sandbox) -> None:
    """A megabyte of wide characters at an odd offset, in one piece and over both streams, loses none."""
    code = f"import sys; t = 'x' + '{_WIDE}' * 100_000; sys.stdout.write(t); sys.stderr.write(t)"
    expected = ("x" + _WIDE * 100_000).encode()
    result = await box.exec(["python3", "-c", code], env={"PYTHONIOENCODING": "utf-8"}, output_limit=len(expected))
    assert (result.stdout, result.stderr) == (expected, expected), (result.stdout_bytes, result.stderr_bytes)


async def check_megabytes_come_back_exactly(box: Sandbox) -> None:
    """Five megabytes of output come back byte for byte when the limit allows."""
    data = random.Random(3).randbytes(5_000_000)
    await box.write_file("data", data)
    result = await box.exec(["cat", "data"], output_limit=len(data))
    assert (result.stdout_bytes, result.truncated) == (len(data), False)
    assert result.stdout == data


async def check_head_and_tail_are_kept(box: Sandbox) -> None:
    """Over the limit, the first and the last half of it come back, and how much there was."""
    text = b"0123456789"
    for limit in (0, 1, 3, 9, 10, 11):
        result = await box.exec(["printf", text.decode()], output_limit=limit)
        kept = text if limit >= 10 else text[: limit - limit // 2] + text[10 - limit // 2 :]
        assert (result.stdout, result.stdout_bytes, result.truncated) == (kept, 10, limit < 10), (limit, result)


async def check_each_stream_has_the_limit(box: Sandbox) -> None:
    """stdout and stderr are cut each for itself."""
    result = await box.exec("seq 1 5000; seq 5001 9000 >&2; exit 3", output_limit=1000)
    out, err = b"".join(b"%d\n" % n for n in range(1, 5001)), b"".join(b"%d\n" % n for n in range(5001, 9001))
    assert (result.stdout, result.stdout_bytes) == (out[:500] + out[-500:], len(out)), result
    assert (result.stderr, result.stderr_bytes) == (err[:500] + err[-500:], len(err)), result
    assert result.exit_code == 3, result


async def check_a_character_at_the_cut_is_cut_as_bytes(box: Sandbox) -> None:
    """The limit counts bytes, also where that cuts a character."""
    data = _WIDE.encode() * 100
    result = await box.exec(["printf", _WIDE * 100], output_limit=10)
    assert (result.stdout, result.stdout_bytes) == (data[:5] + data[-5:], len(data)), result


async def check_combine_keeps_the_order(box: Sandbox) -> None:
    """`combine` sends stderr into stdout in the order in which both were written."""
    result = await box.exec("for i in $(seq 200); do echo out$i; echo err$i >&2; done", combine=True)
    assert result.stdout == b"".join(b"out%d\nerr%d\n" % (n, n) for n in range(1, 201)), result
    assert (result.stderr, result.stderr_bytes) == (b"", 0), result


async def check_a_flood_is_counted_and_cut(box: Sandbox) -> None:
    """Twenty megabytes cost no more than the limit, on success, on failure and on a timeout."""
    flood, line = "yes 0123456789abcde | head -c 20000000", b"0123456789abcde\n"
    for end, code in (("exit 0", 0), ("exit 9", 9)):
        result = await box.exec(f"{flood}; {end}", output_limit=20_000)
        assert (result.exit_code, result.stdout_bytes) == (code, 20_000_000), (result.exit_code, result.stdout_bytes)
        assert result.stdout == line * 1250
    result = await until_ready(box, f"{flood}; echo ready; sleep 600", output_limit=20_000)
    assert (result.timed_out, result.stdout_bytes) == (True, 20_000_006), (result.timed_out, result.stdout_bytes)
    assert result.stdout == line * 625 + (line * 625 + b"ready\n")[-10_000:]


async def check_all_output_is_saved_when_it_is_cut(box: Sandbox) -> None:
    """`save_to` gets all of stdout when that is over the limit, its parents made, and the result says how much."""
    for path in ("deep/er/saved", f"{box.scratch}/{uuid.uuid4().hex}"):
        result = await box.exec("seq 1 100000; seq 5 >&2", save_to=path, output_limit=100)
        everything = b"".join(b"%d\n" % n for n in range(1, 100_001))
        assert result.saved_bytes == result.stdout_bytes == len(everything), result
        assert await box.read_file(path) == everything
        await box.remove(path)


async def check_output_that_was_not_cut_is_not_saved(box: Sandbox) -> None:
    """Output within the limit leaves no file."""
    result = await box.exec("seq 1 10", save_to="saved")
    assert (result.saved_bytes, result.stdout_bytes) == (0, 21), result
    await failure(box.read_file("saved"), FileNotFoundError)


async def check_output_is_never_saved_over_anything(box: Sandbox) -> None:
    """What stands at `save_to` (a file, any link, a directory, a FIFO) stays, and the command runs all the same."""
    await box.exec(
        "echo mine > file; ln -s file link; ln -s target dangling; ln -s /dev/full device; mkdir folder; mkfifo fifo"
    )
    look = "ls -l | tail -n +2; cat file; ls -A folder"
    before = (await box.exec(look)).stdout
    for obstacle in ("file", "link", "dangling", "device", "folder", "fifo"):
        result = await box.exec("seq 1 10000", save_to=obstacle, output_limit=100)
        assert (result.saved_bytes, result.exit_code) == (0, 0), (obstacle, result)
    assert (await box.exec(look)).stdout == before
    await box.remove("fifo")
