"""One side's end of the relay: frames over one descriptor, from any thread. Runs in both boxes.

A frame: 4 bytes length of the body, 1 byte kind, 4 bytes conversation, 2 bytes epoch (how often the solution has been
restarted), the body. A conversation is what one thread of one side and its counterpart on the other say to each other;
within it each request is answered before an earlier one is. Whoever waits for a message reads for all when nobody else
does; a pump reads when every thread is busy otherwise, which costs a thread that only calls nothing.
"""

import _thread
import os
import select
import struct
import time

HEADER = struct.Struct("<IcIH")
CHUNK = 262144
OTHERS = 0x80000000  # conversations that the solution's side begins have numbers from here on
PUMP_SECONDS = 0.005
# Bound here: what runs beside us may replace them in their modules.
os_read, os_write, getpid, leave, sleep, new_lock = (
    os.read,
    os.write,
    os.getpid,
    os._exit,
    time.sleep,
    _thread.allocate_lock,
)


class Conversation:
    """A thread's. `queue` holds messages for it: (kind, epoch, body)."""

    def __init__(self, link, number, shared):
        self.link, self.number, self.shared = link, number, shared
        self.depth = 0  # requests that are under way, in both directions
        self.queue = []
        self.waiting = False
        self.gate = new_lock()
        self.gate.acquire()

    def wake(self):
        try:
            self.gate.release()
        except RuntimeError:
            pass  # it is open


class Ticket:
    """What a thread holds of its conversation: gone with the thread."""

    def __init__(self, conversation):
        self.conversation = conversation

    def __del__(self):
        if self.conversation is not None:  # runs whenever the interpreter likes: only notes it
            self.conversation.link.ended.append(self.conversation.number)


class Link:
    """`begun(number)` is called with the number of a conversation that the other side begins and must return it; `told(
    epoch, body)` when the other side has died (kind D)."""

    def __init__(self, descriptor, begun, told):
        self.descriptor = descriptor
        self.begun, self.told = begun, told
        self.epoch = 0
        self.inbox = bytearray()
        self.conversations = {}
        self.reading, self.writing = new_lock(), new_lock()
        self.pid = getpid()
        self.pumping = False
        self.ended = []  # conversations whose threads are gone
        self.held = b""  # frames that go with the next one

    def hold(self, kind, number, body):
        """Send with the next frame: each wakes whoever reads."""
        with self.writing:
            self.held += HEADER.pack(len(body), kind, number, self.epoch) + body

    def send(self, kind, number, body, epoch=None):
        if getpid() != self.pid:
            leave(0)  # a forked child that came back to where its parent goes on
        data = HEADER.pack(len(body), kind, number, self.epoch if epoch is None else epoch) + body
        with self.writing:
            data, self.held = memoryview(self.held + data), b""
            while self.ended:
                over = self.ended.pop()
                self.conversations.pop(over, None)
                os_write(self.descriptor, HEADER.pack(0, b"Z", over, self.epoch))
            while data:
                data = data[os_write(self.descriptor, data) :]

    def next(self, conversation):
        """The next message of a conversation. :raises EOFError: the other side is gone for good."""
        conversation.waiting = True
        try:
            while not conversation.queue:
                if self.reading.acquire(False):
                    try:
                        while not conversation.queue:
                            self.read()
                    finally:
                        conversation.waiting = False
                        self.reading.release()
                        self.pass_on()
                else:
                    conversation.gate.acquire()
        except BaseException:
            conversation.waiting = False
            self.pass_on()  # it may have been this thread's turn to read
            raise
        conversation.waiting = False  # before its queue is empty again, which would make it one that stays
        return conversation.queue.pop(0)

    def pass_on(self):
        """Wake one that is to read from now on: one that stays, as it has no message of its own yet."""
        for conversation in list(self.conversations.values()):
            if conversation.waiting and not conversation.queue:
                conversation.wake()
                break

    def read(self):
        """Read once, and hand out what came."""
        data = os_read(self.descriptor, CHUNK)
        if getpid() != self.pid:
            leave(0)
        if not data:
            raise EOFError("the relay is closed")
        inbox = self.inbox
        inbox += data
        while len(inbox) >= HEADER.size:
            length, kind, number, epoch = HEADER.unpack_from(inbox)
            end = HEADER.size + length
            if len(inbox) < end:
                return
            body = bytes(inbox[HEADER.size : end])
            del inbox[:end]
            self.hand_out(kind, number, epoch, body)

    def hand_out(self, kind, number, epoch, body):
        if kind == b"D":
            self.epoch = epoch
            self.told(body)
            for conversation in list(self.conversations.values()):
                conversation.queue.append((kind, epoch, body))
                conversation.wake()
            return
        conversation = self.conversations.get(number)
        if conversation is None:
            if kind != b"C":
                return  # its thread is gone
            conversation = self.conversations[number] = self.begun(number)
        conversation.queue.append((kind, epoch, body))
        conversation.wake()

    def start_pump(self):
        if not self.pumping:
            self.pumping = True
            _thread.start_new_thread(self.pump, ())

    def pump(self):
        """Read while every thread that could is busy in code that may wait for what a message brings."""
        poll = select.poll()
        poll.register(self.descriptor, select.POLLIN)
        idle = PUMP_SECONDS
        while True:
            sleep(idle)
            idle = min(PUMP_SECONDS, idle * 2)
            if getpid() != self.pid:
                return
            if self.reading.acquire(False):
                try:
                    while poll.poll(0):
                        self.read()
                        idle = PUMP_SECONDS / 32
                except (OSError, EOFError):
                    return  # whoever reads next will see it
                finally:
                    self.reading.release()
                    self.pass_on()
