"""System calls that make a box of a forked process: namespaces, mounts, capabilities, the system-call filter."""

import _ctypes
import os

from codeenv.sandbox.box.processes import prctl

NEW_MOUNTS, NEW_CGROUP, NEW_USER = 0x00020000, 0x02000000, 0x10000000
NEW_OTHERS = 0x04000000 | 0x08000000 | 0x20000000 | 0x40000000  # host name, IPC, processes, network
SIGCHLD = 17
READ_ONLY, NO_SUID, NO_DEVICES, NO_EXEC, REMOUNT, BIND, RECURSIVE, PRIVATE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 18
CLONE = {"x86_64": 56, "aarch64": 220}
PR_CAPBSET_DROP, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 24, 22, 38
CAPABILITY_VERSION_3 = 0x20080522


class Long(_ctypes._SimpleCData):
    _type_ = "l"


class Text(_ctypes._SimpleCData):
    _type_ = "z"


class Function(_ctypes.CFuncPtr):
    _flags_ = _ctypes.FUNCFLAG_CDECL | _ctypes.FUNCFLAG_USE_ERRNO
    _restype_ = Long


LIBC = _ctypes.dlopen(None, 0)
FUNCTIONS = {name: Function(_ctypes.dlsym(LIBC, name)) for name in ("syscall", "mount", "unshare", "capset", "prctl")}


def call(name, *values):
    """:raises OSError: it failed."""
    answer = FUNCTIONS[name](*(Long(value) if isinstance(value, int) else Text(value) for value in values))
    if answer & 0xFFFFFFFF == 0xFFFFFFFF:
        code = _ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")
    return answer


def clone(flags):
    """A fork into new namespaces, where the child is process 1 at once: with unshare(2) it would take two."""
    return call("syscall", CLONE[os.uname().machine], flags | SIGCHLD, 0, 0, 0, 0)


def mount(source, target, kind=None, flags=0, options=None):
    try:
        call("mount", source, os.fsencode(target), kind, flags, options)
    except OSError as error:
        raise OSError(error.errno, f"{os.fsdecode(target)}: {error.strerror}") from None


def remount_read_only(place, flags):
    mount(b"none", place, None, REMOUNT | BIND | READ_ONLY | flags)


def set_capabilities(numbers=()):
    """Keep these alone; of a process without any, no program that it executes can gain one either."""
    if not numbers:
        for number in range(64):
            if prctl(PR_CAPBSET_DROP, number):
                break  # the kernel knows no more
    mask = sum(1 << number for number in numbers)
    low, high = (mask & 0xFFFFFFFF).to_bytes(4, "little"), (mask >> 32).to_bytes(4, "little")
    data = low + low + bytes(4) + high + high + bytes(4)
    call("capset", CAPABILITY_VERSION_3.to_bytes(4, "little") + bytes(4), data)


def no_new_privileges():
    call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def filter_calls(program):
    """Put a classic BPF program before every system call from now on."""
    pointer = bytes(memoryview(Text(program)).cast("B"))  # `program` outlives the call
    call("prctl", PR_SET_SECCOMP, 2, (len(program) // 8).to_bytes(8, "little") + pointer, 0, 0)
