"""The commands that run in a box: start them, pass their streams on, end them. Runs inside the box.

A command gets a supervisor: a forked child that is the subreaper of everything the command starts. While it
lives, no daemon can leave its family, so a timeout kills the whole tree, also what called setsid; when the
command ends by itself the supervisor leaves and the daemons live on as children of PID 1. A command that is alone
in the box needs none, and most are: PID 1 starts it, and all that there is is its tree.
"""

import _signal
import os
import select
import time

from codeenv.sandbox.box.output import CHUNK, Tail, read_some
from codeenv.sandbox.box.processes import (
    PR_SET_CHILD_SUBREAPER,
    alive,
    be_for_good,
    become,
    children,
    confine,
    excuse,
    exit_code,
    family,
    is_still,
    launch,
    prctl,
    send_signal,
)

LESS_URGENT = 5  # than the agent, which a busy command may not starve
SETTLE_SECONDS = 1.0  # how long new processes may go on to turn up in a killed tree before all of the box is killed
DYING_SECONDS = 7.0  # how long its last ones may take to vanish, on crowded cores; the host waits 10 s for an answer
GROWING = 3  # looks that find new ones: the first finds all, the next what was being forked


class Execution:
    """One running command of the host's."""

    def __init__(self, request, seconds, stdin, limit, save_path, save_limit, combine):
        self.request = request
        self.started = time.monotonic()
        self.deadline = self.started + float(seconds) if seconds else None
        self.stdin = memoryview(stdin)
        self.streams = {}  # descriptor -> Tail
        self.out = Tail(int(limit), os.fsdecode(save_path), int(save_limit))
        self.err = self.out if combine == b"1" else Tail(int(limit), "", 0)
        self.supervisor = self.main = 0  # pids; 0 while there is none, and once the supervisor is gone
        self.status_fd = self.stdin_fd = self.held_fd = -1
        self.status = b""
        self.exit_code = None
        self.timed_out = False
        self.notice = b""
        self.earlier = []  # pids of what is not its own: daemons, other commands

    @property
    def is_alone(self):
        """Whether it was started without a supervisor."""
        return self.supervisor == 0 and self.status_fd < 0


class Commands:
    def __init__(self, poll, send, contained, processes, limits):
        self.poll, self.send = poll, send
        self.contained = contained  # PID 1 of a box of our own; else a plain process of the user's
        self.processes = processes  # the most the policy may have at once
        self.limits = limits  # resource limits of every command
        self.user = None  # whom every command is to be, when we are root behind the scenes
        self.running = {}  # request id -> Execution
        self.by_fd = {}  # descriptor -> Execution
        self.dead = {}  # pid -> status of those reaped since the first of the running ones was started
        self.leftovers = set()  # output pipes that daemons of ended commands still hold: read and dropped

    def start(self, request, fields, send_stream=None):
        """`send_stream`: the command's stdin and stdout are one socket, whose other end goes to the host."""
        if not self.running:
            self.dead.clear()
        cwd, seconds, limit, save_path, save_limit, combine, stdin, argc = fields[:8]
        argv = fields[8 : 8 + int(argc)]
        env = dict(pair.split(b"=", 1) for pair in fields[8 + int(argc) :])
        os.stat(os.path.join(cwd, b"."))  # is it there, is it a directory, may we enter it?
        execution = Execution(request, seconds, stdin, limit, save_path, save_limit, combine)
        self.reap()
        others, execution.notice = self.make_room()
        # All, not our children alone: a supervisor that is about to leave will hand its daemons to us.
        execution.earlier = [pid for pid in family({os.getpid()}) if pid != os.getpid()] if others else []
        alone = self.user is None and not self.limits and not self.running and not execution.earlier
        ours, theirs, hosts = [], [], []
        out_r = -1
        try:
            if send_stream:
                in_r = out_w = socket_pair(hosts, theirs)
            else:
                out_r, out_w = pipe(ours, theirs)
                if stdin:
                    in_r, execution.stdin_fd = pipe(theirs, ours)
                else:
                    in_r = os.open("/dev/null", os.O_RDONLY)
                    theirs.append(in_r)
            err_r, err_w = (-1, out_w) if combine == b"1" else pipe(ours, theirs)
            streams = in_r, out_w, err_w
            if alone:
                os.chdir(cwd)
                execution.main, execution.exit_code = launch(argv, env, streams, bool(send_stream))
                if execution.main:
                    os.setpriority(os.PRIO_PROCESS, execution.main, os.getpriority(os.PRIO_PROCESS, 0) + LESS_URGENT)
            else:
                self.fork_supervisor(execution, ours, theirs, hosts, streams, cwd, argv, env)
        except OSError:
            for fd in ours + theirs + hosts:
                os.close(fd)
            raise
        for fd in theirs:
            os.close(fd)
        execution.streams = {fd: tail for fd, tail in ((out_r, execution.out), (err_r, execution.err)) if fd >= 0}
        self.running[request] = execution
        for fd in ours:
            os.set_blocking(fd, False)
            self.by_fd[fd] = execution
            self.poll.register(fd, select.POLLOUT if fd == execution.stdin_fd else select.POLLIN)
        for fd in hosts:
            send_stream(request, fd)
            os.close(fd)
        if execution.exit_code is not None:
            self.finish(execution)

    def fork_supervisor(self, execution, ours, theirs, hosts, streams, cwd, argv, env):
        execution.status_fd, status_w = pipe(ours, theirs)
        held_r, held_w = pipe(theirs, []) if any(other.is_alone for other in self.running.values()) else (-1, -1)
        try:
            pid = os.fork()
        except OSError as error:  # the policy has as many processes as it may
            execution.exit_code = excuse(argv, streams[2], error)
            pid = 0
        else:
            if pid == 0:
                try:
                    # All of the agent's: a stdin held open here would have no end for the command that reads it.
                    helds = [other.held_fd for other in self.running.values()]
                    agents = [*ours, *hosts, *self.by_fd, *helds, held_w]
                    self.supervise(agents, held_r, streams, status_w, cwd, argv, env)
                finally:
                    os._exit(1)
        execution.supervisor, execution.held_fd = pid, held_w

    def supervise(self, agents, held, streams, status_w, cwd, argv, env):
        """In the child: be the subreaper of the command, report its end, and leave."""
        _signal.set_wakeup_fd(-1)
        _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        for fd in agents:
            if fd >= 0:
                os.close(fd)
        try:
            main = os.fork()
        except OSError as error:  # the policy has as many processes as it may
            os.write(status_w, bytes(4) + excuse(argv, streams[2], error).to_bytes(4, "big"))
            return
        if main == 0:
            os.write(status_w, os.getpid().to_bytes(4, "big"))  # before the command can kill who might tell it for us
            os.chdir(cwd)
            confine(self.limits)
            if self.user is not None:
                be_for_good(self.user)
            os.nice(LESS_URGENT)
            become(argv, env, streams)
        for fd in {0, 1, 2, *streams}:
            os.close(fd)
        while True:
            pid, status = os.waitpid(-1, 0)
            if pid == main:
                break
        os.write(status_w, exit_code(status).to_bytes(4, "big"))
        if held >= 0:
            os.read(held, 1)  # until the agent has seen what the command leaves behind
        os._exit(0)

    # --- events of the agent's loop -------------------------------------------------------------------------

    def deadlines(self):
        return [execution.deadline for execution in self.running.values() if execution.deadline is not None]

    def on_time(self, now):
        for execution in list(self.running.values()):
            if execution.deadline is not None and now >= execution.deadline:
                execution.timed_out = True
                self.kill(execution)
                self.finish(execution)

    def on_pipe(self, fd):
        # A descriptor's number may have passed to another pipe since it was polled: every step bears nothing to do.
        if fd in self.leftovers:
            if read_some(fd) == b"":
                self.forget(fd)
            return
        execution = self.by_fd.get(fd)
        if execution is None:
            return
        if fd == execution.status_fd:
            self.on_status(execution, fd)
        elif fd == execution.stdin_fd:
            self.on_stdin(execution, fd)
        else:
            data = read_some(fd)
            if data:
                execution.streams[fd].add(data)
            elif data is not None:
                self.forget(fd)
                del execution.streams[fd]

    def on_status(self, execution, fd):
        """The command tells its pid before it starts, its supervisor the exit code: 4 bytes each."""
        data = read_some(fd)
        if data is None:
            return
        execution.status += data
        if len(execution.status) >= 4:
            execution.main = int.from_bytes(execution.status[:4], "big")
        if len(execution.status) >= 8:
            execution.exit_code = int.from_bytes(execution.status[4:8], "big")
            self.finish(execution)
        elif not data:  # the supervisor was killed: we reap the command itself
            self.forget(fd)
            execution.status_fd = -1
            self.on_death(execution)

    def on_death(self, execution):
        """Of some child of ours: whether it was the end of a command that has no supervisor, or none any more."""
        if execution.status_fd >= 0:
            return
        if execution.main in self.dead:
            execution.exit_code = exit_code(self.dead[execution.main])
            self.finish(execution)
        elif not execution.supervisor and not alive(execution.main):
            self.finish(execution)  # its supervisor has taken the exit code along

    def on_stdin(self, execution, fd):
        try:
            execution.stdin = execution.stdin[os.write(fd, execution.stdin[:CHUNK]) :]
        except BlockingIOError:
            return
        except OSError:  # the command does not read its input
            execution.stdin = execution.stdin[:0]
        if not execution.stdin:
            self.forget(fd)
            execution.stdin_fd = -1

    def reap(self):
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            owner = next((execution for execution in self.running.values() if execution.supervisor == pid), None)
            if owner:
                owner.supervisor = 0
            elif self.running:
                self.dead[pid] = status
        for execution in list(self.running.values()):
            self.on_death(execution)

    # --- ends -----------------------------------------------------------------------------------------------

    def finish(self, execution):
        if self.running.pop(execution.request, None) is None:
            return
        for fd, stream in execution.streams.items():
            for _ in range(16):  # all that the command itself wrote fits the pipe; a daemon may go on for ever
                data = read_some(fd)
                if not data:
                    break
                stream.add(data)
            if data == b"":
                self.forget(fd)
            else:  # closing it would kill a daemon with SIGPIPE at its next line
                del self.by_fd[fd]
                self.leftovers.add(fd)
        self.forget(execution.status_fd)
        self.forget(execution.stdin_fd)
        self.let_go(execution)
        seconds = time.monotonic() - execution.started
        notice = execution.notice or self.make_room(execution.supervisor)[1]
        out, err = execution.out, execution.err
        fields = [
            b"%d" % (128 + 9 if execution.exit_code is None else execution.exit_code),
            b"1" if execution.timed_out else b"0",
            repr(seconds).encode(),
            out.finish(),
            b"%d" % out.total,
            b"" if err is out else err.finish(),
            b"%d" % (0 if err is out else err.total),
            b"%d" % out.saved,
            notice,
        ]
        self.send(b"r", execution.request, fields)

    def cancel(self, request):
        """The host no longer waits for this command: its tree goes, and nobody will read an answer."""
        execution = self.running.get(request)
        if execution is None:
            return
        self.kill(execution)
        if self.running.pop(request, None) is not None:  # else its end was seen meanwhile
            execution.out.finish()
            for fd in [*execution.streams, execution.status_fd, execution.stdin_fd]:
                self.forget(fd)
            self.let_go(execution)

    def let_go(self, execution):
        """Its supervisor, held back because what it leaves behind will be children of ours, as are those of a command
        without a supervisor, and may not die with that one."""
        if execution.held_fd >= 0:
            left = [pid for pid in family({execution.supervisor}) if pid != execution.supervisor]
            for other in self.running.values():
                other.earlier += left
            os.close(execution.held_fd)
            execution.held_fd = -1

    def end(self, request):
        """The host wants this command to end, and to be told how it did."""
        execution = self.running.get(request)
        if execution is not None:
            self.kill(execution)
            self.finish(execution)

    def forget(self, fd):
        if fd >= 0:
            self.poll.unregister(fd)
            self.by_fd.pop(fd, None)
            self.leftovers.discard(fd)
            os.close(fd)

    def kill(self, execution):
        """Kill the command's whole tree, daemons included. The supervisor is stopped first: were it to leave, its
        orphans would go to PID 1 and could no longer be told from an earlier command's daemons."""
        self.reap()  # is the supervisor still there?
        if execution.supervisor:
            send_signal(execution.supervisor, _signal.SIGSTOP)
        began = time.monotonic()
        known, growing, quiet = set(), 0, 0
        while quiet < 2:  # one look can miss the child of a fork that was under way
            still = not execution.supervisor or is_still(execution.supervisor)  # else it may be about to fork
            tree = self.tree(execution)
            new = [pid for pid in tree if pid not in known]
            known = set(tree)
            growing += bool(new)
            quiet = quiet + 1 if still and not tree else 0
            seconds = time.monotonic() - began
            if seconds > DYING_SECONDS or (new and growing > GROWING and seconds > SETTLE_SECONDS):
                self.kill_all()
                break
            for signal in (_signal.SIGSTOP, _signal.SIGKILL):  # stopped first, so that none forks meanwhile
                for pid in tree:
                    send_signal(pid, signal)
            if not (new or quiet):
                time.sleep(0.001)  # they need a core to die on
        if execution.supervisor:
            send_signal(execution.supervisor, _signal.SIGKILL)

    def tree(self, execution):
        """The command and what it has started. The orphans of one whose supervisor was killed have become children of
        ours: they are all that was not there before and is no other command's."""
        if execution.supervisor:
            return [pid for pid in family({execution.supervisor}) if pid != execution.supervisor]
        others = [pid for e in self.running.values() if e is not execution for pid in (e.supervisor, e.main) if pid]
        kept = {os.getpid(), *family(execution.earlier + others)}
        return [pid for pid in family({os.getpid()}) if pid not in kept]

    def kill_all(self):
        """Kill every other process of the box; in an uncontained run, everything that we started."""
        end = time.monotonic() + SETTLE_SECONDS
        while True:
            tree = [pid for pid in family({os.getpid()}) if pid != os.getpid()]
            if not tree or time.monotonic() > end:
                self.reap()  # the dead count as well until then
                return
            if self.contained:
                send_signal(-1, _signal.SIGKILL)  # one system call, which no fork can outrun
            else:
                for signal in (_signal.SIGSTOP, _signal.SIGKILL):
                    for pid in tree:
                        send_signal(pid, signal)
            self.reap()
            time.sleep(0.001)

    def make_room(self, leaving=0):
        """When what earlier commands left behind has used up the process limit, kill it: the next command could
        not start anything. `leaving` is the pid of a child that is about to end. Returns the pids of our own children,
        and what was done, for the model to read."""
        own = children()
        left = [pid for pid in own if pid != leaving]  # who descends from none of these is no more
        if left and not self.running and self.contained and self.processes:
            count = sum(name.isdigit() for name in os.listdir("/proc"))
            if count > self.processes - 4:
                self.kill_all()
                text = b"the limit of %d processes was reached: all processes left in the background were killed"
                return children(), text % self.processes
        return own, b""


def socket_pair(ours, theirs):
    """A new pair of sockets, its ends filed in the two lists. Returns theirs."""
    import _socket  # not at the start: few boxes need it

    one, other = (end.detach() for end in _socket.socketpair())
    ours.append(one)
    theirs.append(other)
    return other


def pipe(reading, writing):
    """A new pipe, its ends filed in the two lists."""
    read, write = os.pipe()
    reading.append(read)
    writing.append(write)
    return read, write
