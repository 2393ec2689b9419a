"""The program that runs inside a local box, as its PID 1, and does what the host asks.

It is compiled by the box's own Python and sent over the control socket, so it imports nothing of codeenv, and
only modules that start in a few milliseconds (no json, signal, socket or subprocess): an episode pays for its
start. The policy's commands run under the same uid, so the agent makes itself non-dumpable: the kernel then
refuses them its memory, its descriptors and ptrace, and PID 1 ignores signals sent from inside.

Every command gets a supervisor: a forked child that is the subreaper of everything the command starts. While it
lives, no daemon can leave its family, so a timeout kills the whole tree, also what called setsid; when the
command ends by itself the supervisor leaves and the daemons live on as children of PID 1.
"""

import errno
import fcntl
import os
import resource
import select
import stat
import sys
import time

import _signal

from codeenv.sandbox.box import files
from codeenv.sandbox.box.output import CHUNK, Tail, read_some
from codeenv.sandbox.box.processes import (
    PR_SET_CHILD_SUBREAPER,
    PR_SET_DUMPABLE,
    alive,
    become,
    descendants,
    exit_code,
    prctl,
    send_signal,
)
from codeenv.sandbox.box.wire import frames, pack, unpack

SETTLE_SECONDS = 1.0  # how long a killed tree may take to vanish before everything in the box is killed


class Execution:
    """One running command of the host's."""

    def __init__(self, request, deadline, stdin, limit, save_path, save_limit, combine):
        self.request, self.deadline = request, deadline
        self.started = time.monotonic()
        self.stdin = memoryview(stdin)
        self.streams = {}  # descriptor -> Tail
        self.out = Tail(limit, save_path, save_limit)
        self.err = self.out if combine else Tail(limit, "", 0)
        self.supervisor = self.main = 0
        self.status_fd = self.stdin_fd = -1
        self.status = b""
        self.exit_code = None
        self.timed_out = False
        self.notice = b""


class Agent:
    def __init__(self, contained, processes, limits, seconds):
        self.contained = contained  # PID 1 of a box of our own; else a plain process of the user's
        self.processes = processes  # the most the policy may have at once
        self.limits = limits  # resource limits of every command
        self.end = time.monotonic() + seconds  # the box's time to live, also when the host no longer watches
        self.poll = select.poll()
        self.inbox = bytearray()
        self.executions = {}  # request id -> Execution
        self.by_fd = {}  # descriptor -> Execution
        self.leftovers = set()  # output pipes that daemons of ended commands still hold: read and dropped
        self.wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        _signal.signal(_signal.SIGCHLD, lambda *_: None)
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)  # PID 1 without a handler cannot be signalled from inside
        _signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        self.poll.register(0, select.POLLIN)
        self.poll.register(self.wake_read, select.POLLIN)

    # --- the loop -------------------------------------------------------------------------------------------

    def run(self):
        self.send(b"r", 0, [str(os.getpid()).encode()])
        while True:
            for fd, event in self.poll.poll(self.poll_timeout()):
                if fd == 0:
                    if not self.receive():
                        return
                elif fd == self.wake_read:
                    self.reap()
                elif fd in self.leftovers:
                    self.drop(fd)
                elif fd in self.by_fd:
                    self.on_pipe(self.by_fd[fd], fd, event)
            now = time.monotonic()
            if now >= self.end:
                return
            for execution in list(self.executions.values()):
                if execution.deadline and now >= execution.deadline:
                    execution.timed_out = True
                    self.kill(execution)
                    self.finish(execution)

    def poll_timeout(self):
        deadlines = [self.end, *(e.deadline for e in self.executions.values() if e.deadline)]
        # The kernel takes a C int of milliseconds: a longer sleep is had in several turns of the loop.
        return min(max(0, int((min(deadlines) - time.monotonic()) * 1000) + 1), 3_600_000)

    def receive(self):
        data = os.read(0, 4 * CHUNK)
        self.inbox += data
        for kind, request, body in frames(self.inbox):
            self.handle(kind, request, unpack(body))
        return bool(data)  # nothing: the host is gone or has closed us

    def handle(self, kind, request, fields):
        try:
            if kind == b"x":
                self.execute(request, fields)
            elif kind == b"k":
                self.cancel(request)
            elif kind == b"q":
                self.kill_all()
                self.send(b"r", request, [])
            else:
                self.send(b"r", request, files.OPERATIONS[kind](lambda fields: self.send(b"d", request, fields), *fields))
        except OSError as error:
            code, text = error.errno or errno.EIO, error.strerror or str(error)
            self.send(b"f", request, [str(code).encode(), text.encode("utf-8", "replace")])

    def send(self, kind, request, fields):
        data = memoryview(pack(kind, request, fields))
        while data:
            data = data[os.write(1, data) :]

    # --- commands -------------------------------------------------------------------------------------------

    def execute(self, request, fields):
        cwd, timeout, limit, save_path, save_limit, combine, stdin, argc = fields[:8]
        argv = fields[8 : 8 + int(argc)]
        env = dict(pair.split(b"=", 1) for pair in fields[8 + int(argc) :])
        if not stat.S_ISDIR(os.stat(cwd).st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        notice = self.make_room()
        seconds = float(timeout)
        deadline = time.monotonic() + seconds if seconds > 0 else 0
        execution = Execution(
            request, deadline, stdin, int(limit), os.fsdecode(save_path), int(save_limit), combine == b"1"
        )
        execution.notice = notice
        out_r, out_w = os.pipe()
        err_r, err_w = (-1, out_w) if combine == b"1" else os.pipe()
        status_r, status_w = os.pipe()
        if stdin:
            in_r, in_w = os.pipe()
        else:
            in_r, in_w = os.open("/dev/null", os.O_RDONLY), -1
        ours = {fd for fd in (out_r, err_r, status_r, in_w) if fd >= 0}
        theirs = {out_w, err_w, status_w, in_r}
        try:
            pid = os.fork()
        except OSError:
            for fd in ours | theirs:
                os.close(fd)
            raise
        if pid == 0:
            try:
                self.supervise(ours, in_r, out_w, err_w, status_w, cwd, argv, env)
            finally:
                os._exit(1)
        for fd in theirs:
            os.close(fd)
        execution.supervisor, execution.status_fd, execution.stdin_fd = pid, status_r, in_w
        execution.streams = {out_r: execution.out} if err_r < 0 else {out_r: execution.out, err_r: execution.err}
        self.executions[request] = execution
        for fd in ours:
            os.set_blocking(fd, False)
            self.by_fd[fd] = execution
            self.poll.register(fd, select.POLLOUT if fd == in_w else select.POLLIN)

    def supervise(self, agents, in_r, out_w, err_w, status_w, cwd, argv, env):
        """In the child: be the subreaper of the command, report its pid and its end, and leave."""
        _signal.set_wakeup_fd(-1)
        _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        for fd in agents:
            os.close(fd)
        main = os.fork()
        if main == 0:
            become(in_r, out_w, err_w, cwd, argv, env, self.limits)
        for fd in {0, 1, 2, in_r, out_w, err_w}:
            os.close(fd)
        os.write(status_w, main.to_bytes(4, "big"))
        while True:
            pid, status = os.waitpid(-1, 0)
            if pid == main:
                break
        os.write(status_w, exit_code(status).to_bytes(4, "big"))
        os._exit(0)

    def on_pipe(self, execution, fd, event):
        if fd == execution.status_fd:
            data = os.read(fd, 8)
            execution.status += data
            if len(execution.status) >= 4 and not execution.main:
                execution.main = int.from_bytes(execution.status[:4], "big")
            if len(execution.status) >= 8:
                execution.exit_code = int.from_bytes(execution.status[4:8], "big")
                self.finish(execution)
            elif not data:  # the supervisor was killed: reap() will see the command's own end, if it still runs
                self.forget(fd)
                execution.status_fd = -1
                if not execution.main or not alive(execution.main):
                    execution.exit_code = 128 + 9 if execution.exit_code is None else execution.exit_code
                    self.finish(execution)
        elif fd == execution.stdin_fd:
            try:
                written = os.write(fd, execution.stdin[:CHUNK])
                execution.stdin = execution.stdin[written:]
            except OSError:  # the command does not read its input
                execution.stdin = execution.stdin[:0]
            if not execution.stdin:
                self.forget(fd)
                execution.stdin_fd = -1
        else:
            data = read_some(fd)
            if data:
                execution.streams[fd].add(data)
            elif data is not None:
                self.forget(fd)
                del execution.streams[fd]

    def reap(self):
        try:
            os.read(self.wake_read, 4096)
        except BlockingIOError:
            pass
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            for execution in list(self.executions.values()):
                if execution.main == pid:  # only when its supervisor was killed, else that one reaps it
                    execution.exit_code = exit_code(status)
                    self.finish(execution)

    def finish(self, execution):
        if self.executions.pop(execution.request, None) is None:
            return
        for fd, stream in list(execution.streams.items()):
            for _ in range(16):  # all that the command itself wrote fits the pipe; a daemon may go on for ever
                data = read_some(fd)
                if not data:
                    break
                stream.add(data)
            if data is None:
                self.by_fd.pop(fd)
                self.leftovers.add(fd)  # closing it would kill a daemon with SIGPIPE at its next line
            elif data == b"":
                self.forget(fd)
            else:
                self.by_fd.pop(fd)
                self.leftovers.add(fd)
        for fd in (execution.status_fd, execution.stdin_fd):
            if fd >= 0:
                self.forget(fd)
        seconds = time.monotonic() - execution.started
        notice = execution.notice or self.make_room()
        out, err = execution.out, execution.err
        stderr = b"" if err is out else err.finish()
        fields = [
            str(128 + 9 if execution.exit_code is None else execution.exit_code).encode(),
            b"1" if execution.timed_out else b"0",
            repr(seconds).encode(),
            out.finish(),
            str(out.total).encode(),
            stderr,
            str(0 if err is out else err.total).encode(),
            str(out.saved).encode(),
            notice,
        ]
        self.send(b"r", execution.request, fields)

    def cancel(self, request):
        """The host no longer waits for this command: its tree goes, no answer is sent."""
        execution = self.executions.pop(request, None)
        if execution is not None:
            self.kill(execution)
            for fd in [*execution.streams, execution.status_fd, execution.stdin_fd]:
                if fd >= 0:
                    self.forget(fd)

    def forget(self, fd):
        self.poll.unregister(fd)
        self.by_fd.pop(fd, None)
        self.leftovers.discard(fd)
        os.close(fd)

    def drop(self, fd):
        data = read_some(fd)
        if data == b"":
            self.forget(fd)

    # --- killing --------------------------------------------------------------------------------------------

    def kill(self, execution):
        """Kill the command's whole tree, daemons included. The supervisor is stopped first: were it to leave, its
        orphans would go to PID 1 and could no longer be told from an earlier command's daemons."""
        send_signal(execution.supervisor, _signal.SIGSTOP)
        roots = {execution.supervisor, execution.main} - {0}
        end = time.monotonic() + SETTLE_SECONDS
        while True:
            family = [pid for pid in descendants(roots) if pid != execution.supervisor]
            if not family:
                break
            if time.monotonic() > end:
                self.kill_all()
                break
            for signal in (_signal.SIGSTOP, _signal.SIGKILL):  # stopped first, so that none forks meanwhile
                for pid in family:
                    send_signal(pid, signal)
        send_signal(execution.supervisor, _signal.SIGKILL)

    def kill_all(self):
        """Kill every other process of the box; in an uncontained run, everything that we started."""
        end = time.monotonic() + SETTLE_SECONDS
        while True:
            family = descendants({os.getpid()})
            if not family or time.monotonic() > end:
                return
            if self.contained:
                os.kill(-1, _signal.SIGKILL)  # one system call, which no fork can outrun
            else:
                for signal in (_signal.SIGSTOP, _signal.SIGKILL):
                    for pid in family:
                        send_signal(pid, signal)
            self.reap()
            time.sleep(0.001)

    def make_room(self):
        """When what earlier commands left behind has used up the process limit, kill it: the next command could
        not start anything. Says so, for the model to read."""
        if self.executions or not self.processes:
            return b""
        count = len(descendants({os.getpid()}))
        if count < self.processes - 4:
            return b""
        self.kill_all()
        return b"the limit of %d processes was reached: all processes left in the background were killed" % (
            self.processes
        )


def main():
    contained = os.getpid() == 1
    memory, processes, disk, milliseconds = (int(value) for value in sys.argv[1:5])
    folders = sys.argv[5:]
    prctl(PR_SET_DUMPABLE, 0)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    os.umask(0o022)
    for folder in folders:
        os.makedirs(folder, exist_ok=True)
    limits = [(resource.RLIMIT_CORE, 0), (resource.RLIMIT_NOFILE, 4096)]
    if memory:
        limits.append((resource.RLIMIT_AS, memory))
    if disk:
        limits.append((resource.RLIMIT_FSIZE, disk))
    if processes and contained:
        limits.append((resource.RLIMIT_NPROC, processes))
    flags = fcntl.fcntl(1, fcntl.F_GETFL)
    fcntl.fcntl(1, fcntl.F_SETFL, flags & ~os.O_NONBLOCK)
    try:
        Agent(contained, processes, limits, milliseconds / 1000).run()
    finally:
        leave(contained, folders)


def leave(contained, folders):
    # PID 1 takes the box with it; an uncontained agent has to clear up by hand. Its last folder holds all the others.
    if not contained:
        for _ in range(100):
            family = descendants({os.getpid()})
            if not family:
                break
            for pid in family:
                send_signal(pid, _signal.SIGKILL)
            time.sleep(0.01)
        try:
            files.remove_tree(folders[-1])
        except OSError:
            pass
    os._exit(0)


if __name__ == "__main__":
    main()
