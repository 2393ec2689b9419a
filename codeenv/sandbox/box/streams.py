"""The streams of live processes, kept in the box and asked for piece by piece. Runs inside the box."""

import errno
import os
import select
import time

from codeenv.sandbox.box.output import CHUNK, read_some

PIECE = 262_144  # bytes that are handed out at once


class Stream:
    def __init__(self):
        self.writes = []  # (request that brought it, what is left to write, how long it waits for data afterwards)
        self.get = None  # the request that waits for data, and until when
        self.given = 0  # bytes handed out: replies may overtake each other, and each tells where its data belong


class Streams:
    def __init__(self, send):
        self.send = send
        self.poll = None
        self.open = {}  # number of the process -> our end of its socket
        self.by_fd = {}  # that descriptor -> (number, Stream)

    def add(self, number, fd):
        fd = os.dup(fd)  # the caller closes its own
        os.set_inheritable(fd, False)
        os.set_blocking(fd, False)
        self.open[number] = fd
        self.by_fd[fd] = number, Stream()

    def close(self, number):
        fd = self.open.pop(number, None)
        if fd is None:
            return
        _, stream = self.by_fd.pop(fd)
        self.watch(fd, 0)
        os.close(fd)
        for request, *_ in stream.writes:
            self.refuse(request)
        self.answer(stream, b"", True)

    def refuse(self, request):
        self.send(b"f", request, [b"%d" % errno.EPIPE, os.strerror(errno.EPIPE).encode()])

    def answer(self, stream, data=b"", ended=False):
        if stream.get:
            self.send(b"r", stream.get[0], [b"1" if ended else b"0", b"%d" % stream.given, data])
            stream.given += len(data)
            stream.get = None

    def write(self, request, number, data, milliseconds):
        """Once all of it is written this is a `get`: what is written to mostly has an answer."""
        fd = self.open.get(number)
        if fd is None:
            self.refuse(request)
            return
        self.by_fd[fd][1].writes.append((request, memoryview(data), milliseconds))
        self.on_event(fd)

    def get(self, request, number, milliseconds):
        """Answered with whether the stream has ended, where in it the data belong, and the data: as soon as there is
        some, or empty when the time is over or another asks."""
        fd = self.open.get(number)
        if fd is None:
            self.send(b"r", request, [b"1", b"", b""])
            return
        self.wait(self.by_fd[fd][1], request, milliseconds)
        self.on_event(fd)

    def wait(self, stream, request, milliseconds):
        self.answer(stream)
        stream.get = request, time.monotonic() + milliseconds / 1000

    def on_event(self, fd):
        """Do what can be done without waiting. Whether the descriptor is one of ours."""
        if fd not in self.by_fd:
            return False
        _, stream = self.by_fd[fd]
        try:
            while stream.writes:
                request, data, milliseconds = stream.writes[0]
                data = data[os.write(fd, data[:CHUNK]) :]
                stream.writes[0] = request, data, milliseconds
                if not data:
                    del stream.writes[0]
                    self.wait(stream, request, milliseconds)
        except BlockingIOError:
            pass
        except OSError:
            for request, *_ in stream.writes:
                self.refuse(request)
            stream.writes.clear()
        if stream.get:
            got, ended = bytearray(), False
            while len(got) < PIECE:
                try:
                    data = read_some(fd, min(CHUNK, PIECE - len(got)))
                except OSError:  # reset: it ended with something unread
                    data = b""
                if data is None:
                    break
                if not data:
                    ended = True
                    break
                got += data
            if got or ended:
                self.answer(stream, bytes(got), ended and not got)
        self.watch(fd, (select.POLLOUT if stream.writes else 0) | (select.POLLIN if stream.get else 0))
        return True

    def watch(self, fd, events):
        try:
            self.poll.unregister(fd)
        except KeyError:
            pass
        if events:
            self.poll.register(fd, events)

    def deadlines(self):
        return [stream.get[1] for _, stream in self.by_fd.values() if stream.get]

    def on_time(self, now):
        for fd, (_, stream) in list(self.by_fd.items()):
            if stream.get and now >= stream.get[1]:
                self.answer(stream)
                self.on_event(fd)
