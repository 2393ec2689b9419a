"""Process 1 of a nursery: on request it forks itself into the process 1 of a new box.

It stands inside a box of bubblewrap's, which shows what every box of its kind shows, all of it read-only. A fork has
the agent loaded already; it makes namespaces of its own, from a user namespace down, and sized file systems, gives up
every right, and becomes the agent. Descriptor 1 is the way to the host: its end is ours, and every box's with us.

A box is a pair of sockets from the host: the agent's own, and its lifeline, which carries the agent's stderr, the
news of birth and death, and whose closing by the host is the order to end the box.
"""

import _signal
import _socket
import fcntl
import gc
import os
import resource
import select
import sys

from codeenv.sandbox.box import agent
from codeenv.sandbox.box import namespaces as ns
from codeenv.sandbox.box.processes import PR_SET_DUMPABLE, prctl
from codeenv.sandbox.box.wire import unpack

BORN, DYING, GONE, GO = b"\0born", b"\0dying", b"\0gone", b"g"
SETGID, SETUID = 6, 7
SET_FLAGS, UP, RUNNING = 0x8914, 0x1, 0x40
HANG_UP = select.POLLIN | select.POLLRDHUP


class Nursery:
    def __init__(self):
        self.control = _socket.socket(fileno=1)
        self.poll = select.poll()
        self.poll.register(1, select.POLLIN)
        self.lifelines = {}  # descriptor -> the Box
        self.deaths = {}  # descriptor of a box's process 1 -> the Box
        self.highest = 0  # descriptor that we have had

    def run(self):
        while True:
            for fd, _ in self.poll.poll():
                if fd == 1:
                    self.on_request()
                elif fd in self.lifelines:
                    self.on_order(fd)
                else:
                    self.on_death(fd)

    def on_request(self):
        data, rights, _, _ = self.control.recvmsg(65536, _socket.CMSG_SPACE(12), _socket.MSG_CMSG_CLOEXEC)
        if not data:
            os._exit(0)  # the host is gone or has no more use for us
        words = b"".join(words for _, _, words in rights)
        fds = [int.from_bytes(words[at : at + 4], "little") for at in range(0, len(words), 4)]
        if len(fds) < 2:  # we have as many as we may: the host sees them closed
            for fd in fds:
                os.close(fd)
            return
        sock, lifeline = fds[:2]
        line = _socket.socket(fileno=lifeline)
        try:
            pid = self.fork(fds, unpack(data))
        except OSError as error:
            tell(line, f"no box could be made: {error}".encode())
            tell(line, GONE)
            line.close()
            os.close(sock)
        else:
            box = Box(pid, os.pidfd_open(pid), sock, line)
            self.highest = max(self.highest, box.death)
            self.lifelines[lifeline] = self.deaths[box.death] = box
            self.poll.register(lifeline, HANG_UP)
            self.poll.register(box.death, select.POLLIN)
        finally:
            for fd in fds[2:]:
                os.close(fd)

    def fork(self, fds, fields):
        read, write = os.pipe()
        self.highest = max(self.highest, read, write, *fds)
        try:
            pid = ns.clone(ns.NEW_USER | ns.NEW_MOUNTS | ns.NEW_OTHERS)
            if pid == 0:
                try:
                    os.close(write)
                    become_box(self.highest, read, fds, *fields)
                except BaseException as error:
                    os.write(2, f"the box could not be set up: {error}".encode())
                finally:
                    os._exit(1)
            try:
                set_maps(pid, 0, int(fields[0]))
                os.write(write, GO)
            except OSError:
                os.kill(pid, _signal.SIGKILL)
                os.waitpid(pid, 0)
                raise
            return pid
        finally:
            os.close(read)
            os.close(write)

    def on_order(self, fd):
        self.poll.unregister(fd)
        box = self.lifelines.pop(fd)
        box.ordered = True
        tell(box.line, DYING)
        if box.dead:
            box.bury()
        else:
            os.kill(box.pid, _signal.SIGKILL)

    def on_death(self, fd):
        self.poll.unregister(fd)
        box = self.deaths.pop(fd)
        box.dead = True
        os.close(box.death)
        os.close(box.sock)
        if box.ordered:
            box.bury()


class Box:
    """Of its socket we keep a copy, so that the host sees the end of it only when all processes of the box are gone:
    its process 1 ends after all others. Until the host has closed the lifeline we do not wait for the process: its pid
    remains its own, for us and for the host."""

    def __init__(self, pid, death, sock, line):
        self.pid, self.death, self.sock, self.line = pid, death, sock, line
        self.dead = self.ordered = False

    def bury(self):
        os.waitpid(self.pid, 0)
        tell(self.line, GONE)
        self.line.close()


def tell(line, text):
    try:
        line.send(text, _socket.MSG_DONTWAIT)
    except OSError:
        pass  # the host is gone, or does not read what the agent says


def set_maps(pid, inside, outside):
    line = f"{inside} {outside} 1"
    for name, text in (("setgroups", "deny"), ("uid_map", line), ("gid_map", line)):
        fd = os.open(f"/proc/{pid}/{name}", os.O_WRONLY)
        try:
            os.write(fd, text.encode())
        finally:
            os.close(fd)


def become_box(highest, mapped, fds, user, workdir, disk, shm, home, numbers, program):
    sock, lifeline, *group = fds
    kept = [os.dup(fd) for fd in (sock, sock, lifeline, mapped, *group)]  # whose numbers are none of those to be set
    for number, fd in enumerate(kept):
        os.dup2(fd, number)
    os.closerange(len(kept), highest + len(kept) + 1)  # the other boxes' first of all
    if os.read(3, 1) != GO:
        return
    for fd in range(4, len(kept)):
        os.write(fd, b"0")  # ourselves, into our control group
    os.closerange(3, len(kept))
    os.setsid()
    os.nice(5)  # all that runs in boxes yields to the host
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)
    prctl(PR_SET_DUMPABLE, 1)  # for /proc/self to be ours until the agent shuts it
    loopback_up()
    set_up_files(os.fsdecode(workdir), disk, shm)
    ns.call("unshare", ns.NEW_CGROUP)
    with open("/proc/sys/user/max_user_namespaces", "w") as file:
        file.write("1")  # the next one, in which we have no hold on the namespaces made so far
    cover("/proc/sys")
    ns.call("unshare", ns.NEW_USER)
    set_maps("self", 1000, 0)
    ns.set_capabilities()
    ns.no_new_privileges()
    os.chdir(workdir)
    if program:
        ns.filter_calls(program)
    os.write(2, BORN)
    agent.serve(True, *map(int, numbers.split()), [os.fsdecode(home)])


def loopback_up():
    with_socket = _socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM)
    fcntl.ioctl(with_socket.fileno(), SET_FLAGS, b"lo".ljust(16, b"\0") + (UP | RUNNING).to_bytes(24, "little"))
    with_socket.close()


def set_up_files(workdir, disk, shm):
    plain = ns.NO_SUID | ns.NO_DEVICES
    ns.mount(b"proc", "/proc", b"proc", plain | ns.NO_EXEC)
    ns.mount(b"devpts", "/dev/pts", b"devpts", ns.NO_SUID | ns.NO_EXEC, b"newinstance,ptmxmode=0666,mode=620")
    for place, size in (("/dev/shm", shm), ("/tmp", disk), (workdir, disk)):
        if place == workdir:
            os.makedirs(place, exist_ok=True)
        ns.mount(b"tmpfs", place, b"tmpfs", plain, b"mode=0755,size=" + size)


def cover(place):
    ns.mount(os.fsencode(place), place, None, ns.BIND)
    ns.remount_read_only(place, ns.NO_SUID | ns.NO_DEVICES | ns.NO_EXEC)


def main():
    # Seen whole once, or the kernel would not let a box have a /proc of its own: bubblewrap covers parts of its.
    ns.mount(b"proc", "/proc", b"proc", ns.NO_SUID | ns.NO_DEVICES | ns.NO_EXEC)
    ns.mount(b"none", "/", None, ns.RECURSIVE | ns.PRIVATE)
    ns.set_capabilities((SETGID, SETUID))  # to give each box its user; boxes have rights only in what they make
    os.dup2(int(sys.argv[1]), 1)
    os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
    agent.close_inherited()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    agent.reset_signals()
    agent.go_first()
    gc.freeze()  # or a collection in a box would write to, and so copy, all the memory that it shares with us
    Nursery().run()
