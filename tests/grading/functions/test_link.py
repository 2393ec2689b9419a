"""Threads that wait for messages over one descriptor: one of them reads for all, and there is always one that does."""

import socket
import threading
import time
from functools import partial

import pytest

from codeenv.grading.functions.box.link import HEADER, Conversation, Link

PATIENCE = 5.0


@pytest.fixture
def ends():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


class Waiting:
    """Threads that wait for a message each, the first of them reading."""

    def __init__(self, ours: socket.socket, count: int) -> None:
        self.link = Link(ours.fileno(), begun=lambda number: None, told=lambda body: None)
        self.got: dict[int, list[bytes]] = {number: [] for number in range(1, count + 1)}
        self.errors: list[BaseException] = []
        for number in self.got:
            self.link.conversations[number] = Conversation(self.link, number, None)
        self.threads = {number: self.start(number) for number in self.got}

    def start(self, number: int) -> threading.Thread:
        conversation = self.link.conversations[number]
        thread = threading.Thread(target=self.wait, args=(conversation,), daemon=True)
        thread.start()
        end = time.monotonic() + PATIENCE
        while not conversation.waiting and time.monotonic() < end:
            time.sleep(0.001)
        time.sleep(0.01)  # it is marked as waiting a moment before it does
        return thread

    def wait(self, conversation: Conversation) -> None:
        try:
            self.got[conversation.number].append(self.link.next(conversation)[2])
        except EOFError as error:
            self.errors.append(error)

    def over(self, *numbers: int) -> None:
        for number in numbers:
            self.threads[number].join(PATIENCE)
            assert not self.threads[number].is_alive(), f"conversation {number} waits on: {self.got}"


def message(number: int) -> bytes:
    body = b"to %d" % number
    return HEADER.pack(len(body), b"R", number, 0) + body


@pytest.mark.parametrize("together", [(1, 2), (2, 1), (1, 3), (1, 2, 3)], ids=str)
def test_readers_that_go_leave_a_reader(ends, together):
    """Those whose messages come together with the reader's go as well: the next must be one that stays."""
    ours, theirs = ends
    waiting = Waiting(ours, 4)
    theirs.sendall(b"".join(map(message, together)))
    waiting.over(*together)
    for number in {1, 2, 3, 4} - set(together):
        theirs.sendall(message(number))
        waiting.over(number)
    assert waiting.got == {number: [b"to %d" % number] for number in range(1, 5)}


def test_the_end_reaches_all(ends):
    ours, theirs = ends
    waiting = Waiting(ours, 4)
    theirs.close()
    waiting.over(1, 2, 3, 4)
    assert len(waiting.errors) == 4


def test_many_threads_ask_at_once(ends):
    """An echo that keeps some answers back and sends them together."""
    ours, theirs = ends
    link = Link(ours.fileno(), begun=lambda number: None, told=lambda body: None)
    threads, rounds = 8, 300

    def ask(number: int, through: list[int]) -> None:
        conversation = link.conversations[number] = Conversation(link, number, None)
        for turn in range(rounds):
            link.send(b"C", number, b"%d" % turn)
            assert link.next(conversation)[2] == b"%d" % turn
        through.append(number)

    def echo() -> None:
        inbox, kept = bytearray(), []
        answered = 0
        while answered < threads * rounds and (data := theirs.recv(65536)):
            inbox += data
            while len(inbox) >= HEADER.size and len(inbox) >= (end := HEADER.size + HEADER.unpack_from(inbox)[0]):
                kept.append(bytes(inbox[:end]))
                del inbox[:end]
            now, kept = (kept, []) if len(kept) > 2 or answered % 3 else (kept[:1], kept[1:])
            theirs.sendall(b"".join(now))
            answered += len(now)

    through: list[int] = []
    everyone = [threading.Thread(target=partial(ask, number, through), daemon=True) for number in range(1, threads + 1)]
    everyone.append(threading.Thread(target=echo, daemon=True))
    for thread in everyone:
        thread.start()
    for thread in everyone:
        thread.join(30)
    assert sorted(through) == [*range(1, threads + 1)]


def test_what_is_held_goes_with_the_next_frame_and_before_it(ends) -> None:
    ours, theirs = ends
    link = Link(ours.fileno(), begun=lambda number: None, told=lambda body: None)
    link.hold(b"E", 0, b"one")
    link.hold(b"E", 0, b"two")
    theirs.settimeout(0.05)
    with pytest.raises(TimeoutError):
        theirs.recv(100)
    link.send(b"C", 1, b"three")
    link.send(b"C", 1, b"four")
    expected = ((b"E", 0, b"one"), (b"E", 0, b"two"), (b"C", 1, b"three"), (b"C", 1, b"four"))
    frames = [HEADER.pack(len(body), kind, number, 0) + body for kind, number, body in expected]
    assert theirs.recv(1000) == b"".join(frames)
