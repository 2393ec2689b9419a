"""The program that runs inside a local box, as its PID 1, and does what the host asks.

It is compiled by the box's own Python and sent over the control socket, so it imports nothing of codeenv, and
only modules that start in a few milliseconds (no json, signal, socket or subprocess): an episode pays for its
start. The policy's commands run under the same uid, so the agent makes itself non-dumpable: the kernel then
refuses them its memory, its descriptors and ptrace, and PID 1 ignores signals sent from inside.
"""

import _signal
import errno
import os
import resource
import select
import sys
import time

from codeenv.sandbox.box import files
from codeenv.sandbox.box.commands import Commands
from codeenv.sandbox.box.output import CHUNK
from codeenv.sandbox.box.processes import (
    PR_SET_CHILD_SUBREAPER,
    PR_SET_DUMPABLE,
    SIGXFSZ,
    confine,
    family,
    prctl,
    send_signal,
)
from codeenv.sandbox.box.wire import frames, pack, unpack

ROOMY = 1 << 30  # bytes of address space that we can do with as well as any command


class Agent:
    def __init__(self, contained, processes, limits, end, source=0):
        self.source = source  # where requests come from
        self.end = end  # of the box's time to live, on the monotonic clock
        self.inbox = bytearray()
        self.poll = select.poll()
        self.commands = Commands(self.poll, self.send, contained, processes, limits)
        self.wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        _signal.signal(_signal.SIGCHLD, lambda *_: None)
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)  # PID 1 without a handler cannot be signalled from inside
        _signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        self.poll.register(source, select.POLLIN)
        self.poll.register(self.wake_read, select.POLLIN)

    def run(self):
        """Serve until the host closes the socket or the time to live is over."""
        self.send(b"r", 0, [b"%d" % os.getpid()])
        while True:
            for fd, _ in self.poll.poll(self.poll_timeout()):
                if fd == self.source:
                    if not self.receive():
                        return
                elif fd == self.wake_read:
                    os.read(fd, 4096)
                    self.commands.reap()
                else:
                    self.on_pipe(fd)
            now = time.monotonic()
            if now >= self.end:
                return
            self.on_time(now)

    def on_pipe(self, fd):
        self.commands.on_pipe(fd)

    def deadlines(self):
        return self.commands.deadlines()

    def on_time(self, now):
        self.commands.on_time(now)

    def poll_timeout(self):
        seconds = min([self.end, *self.deadlines()]) - time.monotonic()
        # The kernel takes a C int of milliseconds: a longer sleep is had in several turns of the loop.
        return int(min(max(0, seconds * 1000 + 1), 3_600_000))

    def receive(self):
        data = os.read(0, 4 * CHUNK)
        self.inbox += data
        for kind, request, body in frames(self.inbox):
            self.handle(kind, request, unpack(body))
        return bool(data)  # nothing: the host is gone or has closed us

    def handle(self, kind, request, fields):
        try:
            if kind == b"x":
                self.commands.start(request, fields)
            elif kind == b"p":
                self.commands.start(request, fields, self.send_stream)
            elif kind == b"k":
                self.commands.cancel(request)
            elif kind == b"K":
                self.commands.end(request)
            elif kind == b"q":
                self.commands.kill_all()
                self.send(b"r", request, [])
            else:
                operation = files.OPERATIONS[kind]
                self.send(b"r", request, operation(lambda entry: self.send(b"d", request, entry), *fields))
        except OSError as error:
            code, text = error.errno or errno.EIO, error.strerror or str(error)
            self.send(b"f", request, [b"%d" % code, text.encode("utf-8", "replace")])

    def send(self, kind, request, fields):
        data = memoryview(pack(kind, request, fields))
        while data:
            data = data[os.write(1, data) :]

    def send_stream(self, request, stream):
        """Tell the host that a command has started, and give it our end of the command's stream."""
        import _socket  # not at the start: few boxes need it

        host = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, 1)
        rights = (_socket.SOL_SOCKET, _socket.SCM_RIGHTS, stream.to_bytes(4, sys.byteorder))
        host.sendmsg([pack(b"s", request, [])], [rights])
        host.detach()


def main():
    close_inherited()
    reset_signals()
    go_first()
    serve(os.getpid() == 1, *map(int, sys.argv[1:5]), sys.argv[5:])


def serve(contained, memory, processes, disk, milliseconds, folders, make=Agent, own_user=False):
    """Be the agent of this box. Does not return. `own_user`: the uid of its commands is the box's alone, though we may
    not be its process 1."""
    end = time.monotonic() + milliseconds / 1000
    prctl(PR_SET_DUMPABLE, 0)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    os.umask(0o022)
    for folder in folders:
        os.makedirs(folder, exist_ok=True)
    limits = [(resource.RLIMIT_CORE, 0), (resource.RLIMIT_NOFILE, 4096)]
    if disk:
        limits.append((resource.RLIMIT_FSIZE, disk))
    if memory:
        limits.append((resource.RLIMIT_AS, memory))
    if contained or own_user:
        if processes:
            limits.append((resource.RLIMIT_NPROC, processes))
        if not 0 < memory < ROOMY:
            confine(limits)  # ourselves, and so all that will be
            limits = []
    os.set_blocking(1, True)

    def on_alarm(*_):
        if time.monotonic() >= end:  # else a command of the policy's sent it
            leave(contained, folders)

    # The loop watches the end itself; the alarm is for a write to a host that has stopped reading.
    _signal.signal(_signal.SIGALRM, on_alarm)
    _signal.setitimer(_signal.ITIMER_REAL, milliseconds / 1000 + 0.2, 1.0)
    try:
        make(contained, processes, limits, end).run()
    except (BrokenPipeError, ConnectionResetError):
        pass  # the host is gone
    except BaseException:
        sys.excepthook(*sys.exc_info())  # the host reads it when it finds us gone
    finally:
        leave(contained, folders)


def close_inherited():
    """The commands would inherit whatever else the host's processes left open, such as root's mount namespace."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2:
            try:
                os.close(int(name))
            except OSError:
                pass  # the listing's own


def reset_signals():
    """What whoever started us ignored (nohup, a background job), commands would inherit."""
    for number in range(1, _signal.NSIG):
        if number not in (_signal.SIGPIPE, SIGXFSZ) and _signal.getsignal(number) == _signal.SIG_IGN:
            _signal.signal(number, _signal.SIG_DFL)


def go_first():
    """When the host runs out of memory, boxes go before the programs that use them."""
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("500")
    except OSError:
        pass  # it is higher already


def leave(contained, folders):
    # PID 1 takes the box with it; an uncontained agent has to clear up by hand. Its last folder holds all the others.
    if not contained:
        for _ in range(100):
            others = [pid for pid in family({os.getpid()}) if pid != os.getpid()]
            if not others:
                break
            for pid in others:
                send_signal(pid, _signal.SIGKILL)
            time.sleep(0.01)
        try:
            files.remove_tree(os.fsencode(folders[-1]))
        except OSError:
            pass
    os._exit(0)
