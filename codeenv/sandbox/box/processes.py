"""The processes of a box: who descends from whom, signals, what a child does to become the command. Runs inside."""

import _ctypes
import _signal
import errno
import os
import resource

PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 4, 36
SIGXFSZ = 25


def libc(name):
    # ctypes itself costs more to import than the rest of this file: the bare C module is enough for calls of integers.
    class Int(_ctypes._SimpleCData):
        _type_ = "i"

    class Function(_ctypes.CFuncPtr):
        _flags_ = _ctypes.FUNCFLAG_CDECL
        _restype_ = Int

    function = Function(_ctypes.dlsym(_ctypes.dlopen(None, 0), name))
    return lambda *values: function(*map(Int, values))


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


def execute(argv, env):
    """`os.execvpe`, which would import a module first, in every new process. :raises OSError: it cannot be run."""
    name = argv[0]
    if b"/" in name:
        os.execve(name, argv, env)
    failure = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    for folder in env.get(b"PATH", b"/bin:/usr/bin").split(b":"):
        try:
            os.execve(os.path.join(folder, name), argv, env)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except PermissionError as error:
            failure = error  # another of that name may still be runnable
    raise failure


def become(status_w, in_r, out_w, err_w, cwd, argv, env, limits):
    """Turn this process into the command. Does not return."""
    os.setsid()
    os.write(status_w, os.getpid().to_bytes(4, "big"))  # before the command can kill whoever might tell it for us
    os.dup2(in_r, 0)
    os.dup2(out_w, 1)
    os.dup2(err_w, 2)
    try:
        os.chdir(cwd)
        for name, value in limits:
            hard = resource.getrlimit(name)[1]
            top = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(name, (top, top))
        os.nice(5)  # a busy command may not starve the agent
        for number in (_signal.SIGPIPE, _signal.SIGINT, SIGXFSZ):  # Python ignores some of these
            _signal.signal(number, _signal.SIG_DFL)
        execute(argv, env)
    except OSError as error:
        os.write(2, f"codeenv: cannot run {ascii(os.fsdecode(argv[0]))[:200]}: {error.strerror}\n".encode())
        os._exit(127 if error.errno in (errno.ENOENT, errno.ENOTDIR) else 126)
