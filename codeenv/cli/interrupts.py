"""How a command is ended from outside."""

from __future__ import annotations

import signal
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(KeyboardInterrupt):
    """By a signal. As an exit code that is 128 and its number."""

    def __init__(self, number: int) -> None:
        super().__init__(f"ended by {signal.Signals(number).name}")
        self.exit_code = 128 + number


@contextmanager
def interruptible() -> Generator[None]:
    """Signals that ask for an end raise `Interrupted` in the block, so that what it started ends with it; also in a
    shell's background, where an interrupt is ignored unless it is asked for. Under nohup a hangup stays ignored. In the
    main thread alone."""

    def end(number: int, frame: Any) -> None:
        raise Interrupted(number)

    asked = [n for n in ENDINGS if n != signal.SIGHUP or signal.getsignal(n) != signal.SIG_IGN]
    before = {number: signal.signal(number, end) for number in asked}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
