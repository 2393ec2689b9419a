"""A command that is killed beside another one, where what was killed takes long to vanish, as on crowded cores.

The agent's own code runs in a process of its own, on real commands; only how long the dead are still seen is made up.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

PROGRAM = """
import json, os, select, sys, time
from codeenv.sandbox.box import commands

lag, fresh = float(sys.argv[1]), sys.argv[2] == "more"
commands.SETTLE_SECONDS = 0.2
family, seen, pids = commands.family, {}, iter(range(5_000_000, 9_000_000))  # higher than any pid

def slow_family(roots):
    now, known = time.monotonic(), seen.setdefault(frozenset(roots), {})
    found = family(roots)
    known.update((pid, now) for pid in found)
    late = [pid for pid, when in known.items() if pid not in found and now - when < lag]
    return found + late + ([next(pids)] if fresh else [])

answers = {}
poll = select.poll()
running = commands.Commands(poll, lambda kind, request, fields: answers.update({request: fields}), False, 0, [])

def start(request, *argv):
    fields = [os.getcwd().encode(), b"", b"1000", b"", b"0", b"0", b"", b"%d" % len(argv)]
    running.start(request, [*fields, *argv, b"PATH=/usr/bin:/bin"])

start(1, b"sleep", b"60")
start(2, b"sh", b"-c", b"trap 'exit 7' TERM; sleep 60 & wait")
other = running.running[1].main
time.sleep(0.2)
commands.family = slow_family
began = time.monotonic()
running.end(2)
took = time.monotonic() - began
time.sleep(0.05)
running.reap()
lives = 1 in running.running
commands.family = family
running.kill_all()
print(json.dumps({"told": int(answers[2][0]), "other_lives": lives, "seconds": took}))
"""


def killed(lag: float, more: str) -> dict[str, float]:
    command = [sys.executable, "-c", PROGRAM, str(lag), more]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout)


@pytest.mark.parametrize("lag", [0.0, 0.6], ids=["at-once", "the-dead-linger"])
def test_the_other_command_lives_on(lag: float) -> None:
    found = killed(lag, "no")
    assert (found["told"], found["other_lives"]) == (137, True)


def test_where_new_ones_keep_coming_all_of_the_box_goes() -> None:
    """What forks faster than it is killed leaves no other way."""
    found = killed(0.0, "more")
    assert (found["told"], found["other_lives"]) == (137, False)
    assert found["seconds"] < 5
