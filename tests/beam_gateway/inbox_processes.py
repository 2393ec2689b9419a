"""The process manager that a Beam box has as its first process, as our gateway plays it: runs in the box, on the box's
Python, after the text of `codeenv.sandbox.box.wire` and of `inbox_files`.

Everything goes over the one socket that is its stdin and stdout. Requests: `x` run, `k` kill, `f` a file operation; an
answer is `s` or, with a text, `!`. Untold, by the number of the run that it belongs to: `o` and `e`, what came on
stdout and stderr (nothing: all that held it have closed it), and `q`, the process has ended (minus the signal's
number, or its exit code).
"""

import errno
import os
import select

from inbox_files import operate  # dropped where the texts are joined
from wire import frames, pack, unpack

CHUNK = 65536


class Child:
    def __init__(self, number, pid, out, err):
        self.number, self.pid = number, pid
        self.alive = os.pidfd_open(pid)
        self.streams = {out: b"o", err: b"e"}


unsent = bytearray()
"""What is to be said, until all that is known at this moment is: to write and to read it costs the same however much it
is, and whoever measures the gateway measures that too."""


def send(kind, number, fields):
    unsent.extend(pack(kind, number, fields))


def flush():
    data = memoryview(bytes(unsent))
    unsent.clear()
    while data:
        data = data[os.write(1, data) :]


def why(error):
    return (os.strerror(error.errno) if error.errno else str(error)).lower()


def find(name):
    """The program's path, looked for before anything else and in our own PATH."""
    if "/" in name:
        return name
    for directory in os.environ.get("PATH", "").split(":"):
        path = os.path.join(directory, name)
        if os.access(path, os.X_OK) and not os.path.isdir(path):
            return path
    raise OSError(0, f'exec: "{name}": executable file not found in $PATH')


def run(number, path, cwd, argv, env):
    here = os.getcwd()
    (out, out_end), (err, err_end) = os.pipe2(os.O_CLOEXEC), os.pipe2(os.O_CLOEXEC)
    null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if cwd:
            try:
                os.chdir(cwd)
            except OSError as error:
                raise OSError(0, f"chdir {cwd}: {why(error)}") from None
        # Not by a fork: one of Python copies half its memory, and this is measured.
        actions = [(os.POSIX_SPAWN_DUP2, end, number) for number, end in enumerate((null, out_end, err_end))]
        try:
            pid = os.posix_spawn(path, argv, env, file_actions=actions)
        except OSError as error:
            raise OSError(0, f"fork/exec {path}: {os.strerror(error.errno).lower()}") from None
        except ValueError:  # a NUL character
            raise OSError(0, f"fork/exec {path}: {os.strerror(errno.EINVAL).lower()}") from None
    except OSError:
        os.close(out)
        os.close(err)
        raise
    finally:
        os.chdir(here)
        for end in (null, out_end, err_end):
            os.close(end)
    os.set_blocking(out, False)
    os.set_blocking(err, False)
    return Child(number, pid, out, err)


def descendants(pid):
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat") as stat:
                    parents.setdefault(int(stat.read().rsplit(")", 1)[1].split()[1]), []).append(int(name))
            except OSError:
                pass
    found = [pid]
    for each in found:
        found += parents.get(each, [])
    return found


def kill(pid, tree):
    # A tree is stopped before it is killed: none of it may start another meanwhile.
    for number in (19, 9) if tree else (9,):
        for each in reversed(descendants(pid)) if tree else (pid,):
            try:
                os.kill(each, number)
            except ProcessLookupError:
                if each == pid:
                    raise OSError(0, "os: process already finished") from None


class Manager:
    def __init__(self):
        self.children = {}  # by pid
        self.watched = {}  # child by descriptor
        self.alive = set()  # numbers of the children that have not ended
        self.closed = {}  # by such a number, which of its streams have been closed
        self.poll = select.epoll()
        self.poll.register(0, select.EPOLLIN)

    def serve(self):
        inbox = bytearray()
        send(b"s", 0, [])
        while True:
            if unsent:
                flush()
            for descriptor, _ in self.poll.poll():
                if descriptor == 0:
                    data = os.read(0, 1 << 20)
                    if not data:
                        return
                    inbox += data
                    for kind, number, body in frames(inbox):
                        self.handle(kind, number, unpack(body))
                elif descriptor in self.watched:  # else closed by what came before it
                    child = self.watched[descriptor]
                    if descriptor == child.alive:
                        self.ended(child)
                    else:
                        self.read(child, descriptor)

    def handle(self, kind, number, fields):
        try:
            if kind == b"x":
                count = int(fields[1])
                words = [os.fsdecode(word) for word in fields[2:]]
                env = {**os.environ, **dict(word.split("=", 1) for word in words[count:])}
                path = find(words[0])
                child = run(number, path, os.fsdecode(fields[0]), words[:count], env)
                self.children[child.pid] = child
                self.alive.add(child.number)
                for descriptor in (child.alive, *child.streams):
                    self.watched[descriptor] = child
                    self.poll.register(descriptor, select.EPOLLIN)
                answer = [str(child.pid).encode(), os.fsencode(path)]
            elif kind == b"k":
                pid = int(fields[0])
                if pid not in self.children:
                    raise OSError(0, "os: process already finished")
                kill(pid, fields[1] == b"1")
                answer = []
            else:
                answer = operate(*fields)
        except (OSError, ValueError) as error:
            text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            send(b"!", number, [os.fsencode(text)])
        else:
            send(b"s", number, answer)

    def forget(self, descriptor):
        self.poll.unregister(descriptor)
        del self.watched[descriptor]
        os.close(descriptor)

    def read(self, child, descriptor):
        try:
            data = os.read(descriptor, CHUNK)
        except BlockingIOError:
            return False
        if data or child.number not in self.alive:
            send(child.streams[descriptor], child.number, [data])
        else:  # while it runs that changes nothing, and its end comes mostly at once
            self.closed.setdefault(child.number, []).append(child.streams[descriptor])
        if not data:
            self.forget(descriptor)
            del child.streams[descriptor]
        return bool(data)

    def ended(self, child):
        for descriptor in list(child.streams):
            left = 64  # a pipe's worth and some: one that a daemon goes on filling has no end
            while left and self.read(child, descriptor):
                left -= 1
        _, status = os.waitpid(child.pid, 0)
        self.forget(child.alive)
        del self.children[child.pid]
        self.alive.discard(child.number)
        for stream in self.closed.pop(child.number, ()):
            send(stream, child.number, [b""])
        send(b"q", child.number, [str(os.waitstatus_to_exitcode(status)).encode()])


if __name__ == "__main__":
    try:
        Manager().serve()
    except OSError as error:
        if error.errno not in (errno.EPIPE, errno.ECONNRESET):
            raise
