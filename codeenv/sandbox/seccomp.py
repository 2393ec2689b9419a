"""The system-call filter of a local box, as classic BPF.

A network namespace does not isolate AF_VSOCK, so a filter must; only the socket families that programs need are left.
io_uring goes with it: its operations open sockets past any filter. The rest of the list is kernel surface that
no task needs. A denied call fails with an errno as on a kernel without it, so that programs fall back.
"""

import errno
import platform
import struct
from functools import lru_cache

LOAD, JUMP_EQUAL, JUMP_GREATER_EQUAL, RETURN = 0x20, 0x15, 0x35, 0x06
ALLOW, DENY = 0x7FFF0000, 0x00050000
SYSCALL_OFFSET, ARCH_OFFSET, FIRST_ARGUMENT_OFFSET = 0, 4, 16
X32_BIT = 0x40000000
ALLOWED_FAMILIES = (1, 2, 10, 16)  # AF_UNIX, AF_INET, AF_INET6, AF_NETLINK

# architecture: (audit number, number of socket(); socketpair is left alone, denied calls)
NUMBERS = {
    "x86_64": (
        0xC000003E,
        41,
        (425, 426, 427, 248, 249, 250, 321, 323, 298, 165, 166, 155, 246, 175, 313, 176, 310, 311),
    ),
    "aarch64": (
        0xC00000B7,
        198,
        (425, 426, 427, 217, 218, 219, 280, 282, 241, 40, 39, 41, 104, 105, 273, 106, 270, 271),
    ),
}
"""Denied: io_uring (three), add_key, request_key, keyctl, bpf, userfaultfd, perf_event_open, mount, umount2,
pivot_root, kexec_load, init_module, finit_module, delete_module, process_vm_readv, process_vm_writev."""


@lru_cache(maxsize=4)
def program(machine: str | None = None) -> bytes:
    """The filter for `bwrap --seccomp`, in the machine's byte order. Empty where we have no numbers for the
    architecture (the caller must then say so)."""
    numbers = NUMBERS.get(machine or platform.machine())
    if numbers is None:
        return b""
    architecture, socket, denied = numbers
    enosys, eperm, family = (DENY | code for code in (errno.ENOSYS, errno.EPERM, errno.EAFNOSUPPORT))
    code: list[tuple[int, int, int, int]] = [
        (LOAD, 0, 0, ARCH_OFFSET),
        (JUMP_EQUAL, 1, 0, architecture),
        (RETURN, 0, 0, enosys),  # a foreign call table (32-bit) would walk round every number below
        (LOAD, 0, 0, SYSCALL_OFFSET),
        (JUMP_GREATER_EQUAL, 0, 1, X32_BIT),
        (RETURN, 0, 0, enosys),
        (JUMP_EQUAL, 0, 2 + len(ALLOWED_FAMILIES), socket),
        (LOAD, 0, 0, FIRST_ARGUMENT_OFFSET),
    ]
    for index, allowed in enumerate(ALLOWED_FAMILIES):
        # To the final ALLOW: past the families left, the denial, and two instructions for each denied call.
        code.append((JUMP_EQUAL, len(ALLOWED_FAMILIES) - index - 1 + 1 + 2 * len(denied), 0, allowed))
    code.append((RETURN, 0, 0, family))
    for number in denied:
        code.append((JUMP_EQUAL, 0, 1, number))
        code.append((RETURN, 0, 0, enosys if 425 <= number <= 427 else eperm))
    code.append((RETURN, 0, 0, ALLOW))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)
