"""How commands end: by themselves beside their daemons, at their time limit, by a signal. The box goes on."""

from __future__ import annotations

from codeenv.sandbox.api import Sandbox
from codeenv.sandbox.conformance.support import LONG, SESSION, in_time, marker, settles, until_ready


async def check_a_daemon_does_not_hold_its_command_up(box: Sandbox) -> None:
    """A command returns as soon as its main process ends, also when a child holds its pipes; the child lives on."""
    for template in (
        "sleep {0} & echo started",
        SESSION + " sleep {0} & echo started",
        "nohup sleep {0} > /dev/null 2>&1 & echo started",
        "(" + SESSION + " sleep {0} & exit) ; echo started",
        "(sleep {0}) 2>&1 & disown; echo started",
    ):
        argument = marker()
        with in_time():
            result = await box.exec(template.format(argument))
        assert (result.stdout, result.exit_code, result.timed_out) == (b"started\n", 0, False), result
        assert result.seconds < 1.5, result
        await settles(box, argument, 1)
        assert (await box.exec("echo next")).stdout == b"next\n"


async def check_a_daemon_may_go_on_printing(box: Sandbox) -> None:
    """A daemon that prints to the output of its ended command neither blocks nor dies of it."""
    daemon = "while :; do echo tick; i=$((i+1)); echo $i > new; mv new ticks; sleep 0.02; done"
    with in_time():
        result = await box.exec(f"({daemon}) & until [ -s ticks ]; do sleep 0.02; done; echo started")
    assert b"started" in result.stdout, result
    first = int((await box.exec("cat ticks")).stdout)
    with in_time():
        await box.exec(f"until [ $(cat ticks) -gt {first + 3} ]; do sleep 0.02; done")


async def check_a_timeout_keeps_what_was_printed(box: Sandbox) -> None:
    """On a timeout both streams keep what was printed before, and the result says that it timed out, with 137."""
    result = await until_ready(box, f"echo before >&2; echo ready; sleep {LONG}")
    assert (result.stdout, result.stderr) == (b"ready\n", b"before\n"), result
    assert (result.timed_out, result.exit_code) == (True, 137), result
    assert result.seconds > 0.5, result


async def check_a_timeout_covers_the_whole_list(box: Sandbox) -> None:
    """The limit is for all of `a && b || c; d`: nothing of it runs later."""
    result = await until_ready(box, f"echo ready && sleep {LONG} && touch two || touch three; touch four")
    assert result.timed_out, result
    assert (await box.exec("sleep 0.2; ls")).stdout == b""


async def check_no_time_at_all_is_a_timeout_at_once(box: Sandbox) -> None:
    """A timeout of 0 ends the command at once, and it counts as timed out."""
    for timeout in (0, -1.0, 1e-9):
        with in_time():
            result = await box.exec(f"sleep {LONG}", timeout=timeout)
        assert result.timed_out, result


async def check_a_very_long_limit_is_one(box: Sandbox) -> None:
    """Limits of years, and without an end, are limits like any other."""
    for timeout in (1e12, float("inf"), None):
        result = await box.exec("echo x", timeout=timeout)
        assert (result.stdout, result.timed_out) == (b"x\n", False), result


async def check_a_command_in_time_has_not_timed_out(box: Sandbox) -> None:
    """A command of more than a second that ends within its limit ends as any other."""
    result = await box.exec("sleep 1.3; echo late; exit 5", timeout=60)
    assert (result.stdout, result.exit_code, result.timed_out) == (b"late\n", 5, False), result


async def check_a_timeout_kills_the_whole_tree(box: Sandbox) -> None:
    """On a timeout everything that the command started dies, also what has a session of its own or was orphaned."""
    argument = marker()
    one = f"sh -c 'touch $0; exec sleep {argument}'"
    started = "until [ -e 1 ] && [ -e 2 ] && [ -e 3 ]; do sleep 0.05; done"
    await until_ready(
        box, f"{one} 1 & {SESSION} {one} 2 & ({SESSION} {one} 3 & exit); {started}; echo ready; sleep {LONG}"
    )
    await settles(box, argument, 0)


async def check_a_timeout_ends_one_that_ignores_signals(box: Sandbox) -> None:
    """A command that ignores every signal that can be ignored ends at its limit all the same."""
    result = await until_ready(box, "trap '' TERM INT HUP QUIT; echo ready; while :; do sleep 0.05; done")
    assert result.timed_out, result
    assert (await box.exec("echo fine")).stdout == b"fine\n"


async def check_a_timeout_spares_earlier_daemons(box: Sandbox) -> None:
    """A daemon that an earlier command left survives the timeout of a later one."""
    earlier, later = marker(), marker()
    await box.exec(f"{SESSION} sleep {earlier} & sleep 0.01")
    await settles(box, earlier, 1)
    await until_ready(box, f"echo ready; sleep {later}")
    await settles(box, later, 0)
    await settles(box, earlier, 1)


async def check_timeouts_leave_nothing_behind(box: Sandbox) -> None:
    """One timeout after the other leaves no process."""
    argument = marker()
    for _ in range(3):
        assert (await box.exec(f"sleep {argument} & sleep {argument}", timeout=0.1)).timed_out
    await settles(box, argument, 0)


async def check_the_box_goes_on_after_any_end(box: Sandbox) -> None:
    """Whatever a command does to itself, the next one works."""
    for command, code in (
        ("exit 3", 3),
        ("kill -9 $$", 137),
        ("kill -TERM $$", 143),
        ("exec false", 1),
        ("ulimit -n 3; exec 1>&- 2>&-; exit 4", 4),
    ):
        with in_time():
            result = await box.exec(command)
        assert (result.exit_code, result.timed_out) == (code, False), (command, result)
        assert (await box.exec("echo fine; exit 4")).stdout == b"fine\n", command
