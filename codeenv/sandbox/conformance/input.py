"""stdin of a command."""

from __future__ import annotations

import hashlib
import random

from codeenv.sandbox.api import Sandbox
from codeenv.sandbox.conformance.support import LONG, in_time


async def check_input_is_at_its_end(box: Sandbox) -> None:
    """Without `stdin` a command that reads finds the end at once."""
    with in_time():
        result = await box.exec("cat; read x; echo $?; python3 -c 'input()' 2>&1 | tail -1")
    assert result.stdout.startswith(b"1\nEOFError"), result


async def check_input_arrives_exactly(box: Sandbox) -> None:
    """`stdin` arrives byte for byte, and then its end: any bytes, megabytes of them."""
    for data in (b"x", b"two\nlines", bytes(range(256)) * 10, random.Random(1).randbytes(3_000_001)):
        result = await box.exec(["sha256sum"], stdin=data)
        assert result.stdout.split()[0].decode() == hashlib.sha256(data).hexdigest(), (len(data), result)


async def check_input_goes_through_a_command(box: Sandbox) -> None:
    """What a command reads while it writes comes back whole: nothing waits for anything else."""
    data = random.Random(2).randbytes(5_000_000)
    with in_time(10):
        result = await box.exec(["cat"], stdin=data, output_limit=len(data))
    assert result.stdout == data, (len(result.stdout), result.exit_code)


async def check_input_that_nobody_reads_holds_nothing_up(box: Sandbox) -> None:
    """Much input to a command that does not read it, or closes it, neither blocks nor fails the command."""
    for command in ("true", "sleep 0.2", "exec 0<&-; sleep 0.2", "head -c 1 > first"):
        with in_time(10):
            result = await box.exec(command, stdin=b"x" * 1_000_000)
        assert (result.exit_code, result.timed_out) == (0, False), (command, result)
    assert (await box.exec("cat first -", stdin=b"next")).stdout == b"xnext"


async def check_input_to_one_that_is_killed(box: Sandbox) -> None:
    """A command that times out with its input unread leaves none of it to the next."""
    with in_time(10):
        assert (await box.exec(f"sleep {LONG}", stdin=b"x" * 1_000_000, timeout=0.3)).timed_out
    assert (await box.exec("cat", stdin=b"next")).stdout == b"next"
