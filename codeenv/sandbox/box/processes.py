"""The processes of a box: who descends from whom, signals, what a child does to become the command. Runs inside."""

import errno
import os
import resource

import _ctypes
import _signal

PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 4, 36
SIGXFSZ = 25


def prctl(option, value):
    # ctypes itself costs more to import than the rest of this file: the bare C module is enough for one call.
    class Int(_ctypes._SimpleCData):
        _type_ = "i"

    class Function(_ctypes.CFuncPtr):
        _flags_ = _ctypes.FUNCFLAG_CDECL
        _restype_ = Int

    return Function(_ctypes.dlsym(_ctypes.dlopen(None, 0), "prctl"))(Int(option), Int(value), Int(0), Int(0), Int(0))


def exit_code(status):
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)


def send_signal(pid, number):
    try:
        os.kill(pid, number)
    except OSError:
        pass


def alive(pid):
    return os.path.exists("/proc/%d" % pid)


def descendants(roots):
    """Pids of the living processes below `roots` (themselves left out unless below another)."""
    children = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/%s/stat" % name, "rb") as file:
                    state, parent = file.read().rpartition(b")")[2].split()[:2]
            except OSError:
                continue
            if state not in b"ZX":
                children.setdefault(int(parent), []).append(int(name))
            else:
                children.setdefault(int(parent), [])
    found, todo = [], list(roots)
    if len(roots) > 1:  # the command itself, in case its supervisor is gone
        found = [pid for pid in roots if any(pid in kids for kids in children.values())]
    while todo:
        kids = children.get(todo.pop(), [])
        todo += kids
        found += kids
    return list(dict.fromkeys(found))


def become(in_r, out_w, err_w, cwd, argv, env, limits):
    """Turn this process into the command. Does not return."""
    os.setsid()
    os.dup2(in_r, 0)
    os.dup2(out_w, 1)
    os.dup2(err_w, 2)
    try:
        os.chdir(cwd)
        for name, value in limits:
            soft, hard = resource.getrlimit(name)
            top = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(name, (top, top))
        try:
            with open("/proc/self/oom_score_adj", "w") as file:
                file.write("500")  # if memory runs out, a command goes before the agent
            os.nice(5)  # nor may a busy command starve the agent
        except OSError:
            pass
        for number in (_signal.SIGPIPE, _signal.SIGINT, SIGXFSZ):  # Python ignores some of these
            _signal.signal(number, _signal.SIG_DFL)
        os.execvpe(argv[0], argv, env)
    except OSError as error:
        text = "codeenv: cannot run %s: %s\n" % (ascii(os.fsdecode(argv[0]))[:200], error.strerror)
        os.write(2, text.encode())
        os._exit(126 if error.errno == errno.EACCES else 127)
