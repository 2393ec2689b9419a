"""The processes of a box: who descends from whom, signals, what a child does to become the command. Runs inside."""

import _ctypes
import _signal
import errno
import os
import resource

PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 4, 36
SIGXFSZ = 25
IGNORED = (_signal.SIGPIPE, _signal.SIGINT, SIGXFSZ)  # by Python, some of them


class Int(_ctypes._SimpleCData):
    _type_ = "i"


def libc(name):
    # ctypes itself costs more to import than the rest of this file: the bare C module is enough for calls of integers.
    class Function(_ctypes.CFuncPtr):
        _flags_ = _ctypes.FUNCFLAG_CDECL
        _restype_ = Int

    return Function(_ctypes.dlsym(_ctypes.dlopen(None, 0), name))


PRCTL = libc("prctl")


def prctl(option, value):
    return PRCTL(option, value, 0, 0, 0)


def exit_code(status):
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)


def send_signal(pid, number):
    try:
        os.kill(pid, number)
    except OSError:
        pass


def alive(pid):
    return os.path.exists(f"/proc/{pid}")


def is_still(pid):
    """Whether it runs no more: a signal to stop or die takes effect only when the process next looks."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] in b"TtZX"
    except OSError:
        return True


def children():
    """Pids of our own children."""
    pid = os.getpid()
    with open(f"/proc/{pid}/task/{pid}/children", "rb", buffering=0) as file:
        return [int(word) for word in file.read().split()]


def family(roots):
    """Pids of the living processes among `roots` and all that descend from them."""
    children, living = {}, set()
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
            except OSError:
                continue
            children.setdefault(int(fields[1]), []).append(int(name))
            # A process whose first thread has ended looks like a zombie, but its other threads run on.
            if fields[0] not in b"ZX" or int(fields[17]) > 1:
                living.add(int(name))
    found = list(roots)
    for pid in found:
        found += children.get(pid, [])
    return [pid for pid in dict.fromkeys(found) if pid in living]


def launch(argv, env, streams):
    """Start the command in a session of its own, its standard streams these three descriptors: its pid; or 0 when it
    cannot be run, the reason on its standard error and the exit code that a shell has for that.

    Not by fork and exec: a fork of Python copies half its memory, page by page.
    """

    def spawn(path, argv, env):
        return os.posix_spawn(
            path, argv, env, setsid=True, setsigdef=IGNORED,
            file_actions=[(os.POSIX_SPAWN_DUP2, fd, number) for number, fd in enumerate(streams)],
        )  # fmt: skip

    try:
        return on_path(spawn, argv, env), None
    except OSError as error:
        return 0, excuse(argv, streams[2], error)


def become(argv, env, streams):
    """The same in a process of ours, which becomes the command. Does not return."""
    os.setsid()
    for number, fd in enumerate(streams):
        os.dup2(fd, number)
    for number in IGNORED:
        _signal.signal(number, _signal.SIG_DFL)
    try:
        on_path(os.execve, argv, env)
    except OSError as error:
        os._exit(excuse(argv, 2, error))


def on_path(start, argv, env):
    """As `os.posix_spawnp` and `os.execvpe` search, of which one takes the wrong PATH and the other imports a module
    first, in every new process. :raises OSError: it cannot be run."""
    name = argv[0]
    folders = [b""] if b"/" in name else env.get(b"PATH", b"/bin:/usr/bin").split(b":")
    failure = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    for path in (os.path.join(folder, name) for folder in folders):
        if len(folders) > 1 and not os.path.exists(path):
            continue
        try:
            return start(path, argv, env)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except PermissionError as error:
            failure = error  # another of that name may still be runnable
    raise failure


def excuse(argv, stderr, error):
    os.write(stderr, f"codeenv: cannot run {ascii(os.fsdecode(argv[0]))[:200]}: {error.strerror}\n".encode())
    return 127 if error.errno in (errno.ENOENT, errno.ENOTDIR) else 126


def confine(limits):
    """Put ourselves, and so what we start, under these limits."""
    for name, value in limits:
        hard = resource.getrlimit(name)[1]
        top = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(name, (top, top))


def be_for_good(user):
    """Give up being root, of which nothing stays behind."""
    os.seteuid(0)
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
