"""The processes of a box: who descends from whom, signals, what a child does to become the command. Runs inside."""

import _ctypes
import _signal
import errno
import os
import resource
import sys

PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 4, 36
SIGXFSZ = 25
OURS = (b"python3", b"-I", b"-S", b"-B", b"-c")
"""How we have been started ourselves."""
HIGHEST = 1 << 20  # above any descriptor
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


def launch(argv, env, streams, may_fork=False):
    """Start the command in a session of its own, its standard streams these three descriptors: its pid; or 0 when it
    cannot be run, the reason on its standard error and the exit code that a shell has for that. `may_fork`: a Python
    that is ours need not be started.

    Else not by fork and exec: a fork of Python copies half its memory, page by page.
    """

    def spawn(path, argv, env):
        return os.posix_spawn(
            path, argv, env, setsid=True, setsigdef=IGNORED,
            file_actions=[(os.POSIX_SPAWN_DUP2, fd, number) for number, fd in enumerate(streams)],
        )  # fmt: skip

    try:
        python = our_python(argv, env) if may_fork else None
        return fork_program(python, argv, env, streams) if python else on_path(spawn, argv, env), None
    except OSError as error:
        return 0, excuse(argv, streams[2], error)


def our_python(argv, env):
    """The path of the Python that the command asks for, when it is a program in our own, started as we were: what we
    are already. Else None."""
    if tuple(argv[:5]) == OURS and len(argv) > 5:
        for folder in env.get(b"PATH", b"").split(b":"):
            path = os.path.join(folder, OURS[0])
            if os.path.exists(path):
                return path if os.path.samefile(path, sys.executable) else None
    return None


def fork_program(path, argv, env, streams):
    """The same for a command in `our_python`, without starting a Python, which takes 8 ms: its pid.

    What it finds differs from a new process's in the modules that are loaded, the mode of text (UTF-8 whatever the
    locale) and the hash seed, which is the same for all that were forked from one nursery.
    """
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.setsid()
            for number, fd in enumerate(streams):
                os.dup2(fd, number)
            os.closerange(3, HIGHEST)
            _signal.set_wakeup_fd(-1)
            for number in (_signal.SIGCHLD, _signal.SIGALRM):
                _signal.signal(number, _signal.SIG_DFL)
            _signal.signal(_signal.SIGINT, _signal.default_int_handler)
            prctl(PR_SET_DUMPABLE, 1)
            os.environ.clear()
            os.environb.update(env)
            sys.executable = os.fsdecode(path)
            sys.argv = ["-c", *map(os.fsdecode, argv[6:])]
            module = sys.modules["__main__"] = type(sys)("__main__")
            try:
                exec(compile(argv[5], "<string>", "exec"), module.__dict__)  # noqa: S102
                status = 0
            except SystemExit as error:
                status = error.code if isinstance(error.code, int) else int(error.code is not None)
            except BaseException:
                sys.excepthook(*sys.exc_info())
            finish()
        finally:
            os._exit(status)
    return pid


def finish():
    """What a Python does at its end."""
    if "threading" in sys.modules:
        sys.modules["threading"]._shutdown()
    import atexit

    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()


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
