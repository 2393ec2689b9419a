"""File operations of the agent: every path is the box's own. Runs inside the box.

Nothing here waits: a FIFO is opened without blocking and refused, a device is refused. A kernel error goes up as the
OSError it is.
"""

import errno
import os
import stat

from codeenv.sandbox.box.output import CHUNK


def read(send, path, limit):
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        left = int(limit)
        if size > left:
            raise OSError(errno.EFBIG, f"{size} bytes, more than the limit of {left}")
        while left >= 0:  # /proc files have size 0 and content all the same: count while reading
            data = file.read(CHUNK)
            if not data:
                return []
            left -= len(data)
            send([data])
        raise OSError(errno.EFBIG, f"more than the limit of {int(limit)} bytes")


def write(send, path, mode, append, data):
    # O_NONBLOCK: opening a FIFO without a reader is an error, not a wait.
    flags = os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK | (os.O_APPEND if append == b"1" else os.O_TRUNC)
    try:
        fd = os.open(path, flags, 0o666)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        fd = os.open(path, flags, 0o666)
    with open(fd, "wb", buffering=0) as file:
        must_be_regular(fd)
        view = memoryview(data)
        while view:
            view = view[file.write(view) :]
        if mode:
            os.fchmod(fd, int(mode))
    return []


def remove(send, path):
    if stat.S_ISDIR(os.lstat(path).st_mode):
        remove_tree(path)
    else:
        os.unlink(path)
    return []


def list_tree(send, path, limit):
    """One `d` frame an entry: kind, path relative to the root asked for, mode, size."""
    left = int(limit)
    for kind, relative, _, info in walk(path):
        left -= 1
        if left < 0:
            raise OSError(errno.E2BIG, f"more than the limit of {int(limit)} entries")
        send([kind, relative, b"%d" % stat.S_IMODE(info.st_mode), b"%d" % info.st_size])
    return []


def export(send, path, max_bytes, max_entries, max_file=b"", *leave_out):
    """One `d` frame an entry: kind, path, mode, content (of a link: its target); long files go on as `+`. A file over
    `max_file` bytes is `s`, its size for its content; what bears a name of `leave_out` is not there."""
    bytes_left, entries_left = int(max_bytes), int(max_entries)
    for kind, relative, full, info in walk(path, leave_out):
        if kind == b"f" and max_file and info.st_size > int(max_file):
            send([b"s", relative, b"%d" % stat.S_IMODE(info.st_mode), b"%d" % info.st_size])
            continue
        entries_left -= 1
        bytes_left -= info.st_size if kind == b"f" else 0
        if entries_left < 0:
            raise OSError(errno.E2BIG, f"more than {int(max_entries)} files")
        if bytes_left < 0:
            raise OSError(errno.EFBIG, f"more than {int(max_bytes)} bytes")
        mode = b"%d" % stat.S_IMODE(info.st_mode)
        try:
            if kind == b"f":
                export_file(send, relative, full, mode, info.st_size)
            else:
                send([kind, relative, mode, os.readlink(full) if kind == b"l" else b""])
        except FileNotFoundError:  # a process of the box removed it meanwhile
            pass
    return []


def export_file(send, relative, full, mode, size):
    try:
        file = open_regular(full, os.O_NOFOLLOW)
    except FileNotFoundError:
        raise
    except OSError:  # unreadable, or no longer the file that was found here
        send([b"u", relative, mode, b""])
        return
    kind = b"f"
    with file:
        while True:  # never more than was counted, also if the file grows meanwhile
            data = file.read(min(4 * CHUNK, size))
            send([kind, relative, mode, data])
            size -= len(data)
            kind = b"+"
            if not data or size <= 0:
                return


def import_(send, root, *entries):
    for at in range(0, len(entries), 4):
        kind, relative, mode, data = entries[at : at + 4]
        path = os.path.join(root, relative)
        if kind == b"+":
            write(send, path, mode, b"1", data)
            continue
        for index, char in enumerate(relative):  # what stands in a parent's place makes room, a link too
            if char == ord("/"):
                make_directory(os.path.join(root, relative[:index]))
        if kind == b"d":
            make_directory(path)
            os.chmod(path, int(mode) | 0o700)
            continue
        if os.path.lexists(path):
            remove(send, path)
        if kind == b"l":
            os.makedirs(root, exist_ok=True)
            os.symlink(data, path)
        else:
            write(send, path, mode, b"0", data)
    return []


def make_directory(path):
    if os.path.isdir(path) and not os.path.islink(path):
        return
    if os.path.lexists(path):
        os.unlink(path)
    os.makedirs(path)


def must_be_regular(fd):
    mode = os.fstat(fd).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "not a regular file")


def open_regular(path, flags=0):
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | flags)
    try:
        must_be_regular(fd)
    except OSError:
        os.close(fd)
        raise
    return open(fd, "rb", buffering=0)


def remove_tree(path):
    """Every directory below `path` is moved up into `path` before it is emptied, so that no tree is too deep for the
    stack or for the longest path that the kernel takes."""
    todo = [path]
    while todo:
        folder = todo.pop()
        try:
            os.chmod(folder, 0o700)
        except OSError:
            pass  # another user's: what can be removed is removed
        with os.scandir(folder) as found:
            entries = list(found)
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                moved = os.path.join(path, b".removed-" + os.urandom(8).hex().encode())
                try:
                    os.chmod(entry.path, 0o700)  # a directory that we may not write to cannot be moved
                except OSError:
                    pass
                os.rename(entry.path, moved)
                todo.append(moved)
            else:
                os.unlink(entry.path)
        if folder != path:
            os.rmdir(folder)
    os.rmdir(path)


hidden = b""
"""A directory that is not listed or exported: our own, where the box has no other place for it."""


def is_named(name, patterns):
    """Whether one of the names is this one; `*` at an end of it stands for anything."""
    for pattern in patterns:
        if pattern[:1] == b"*":
            found = name.endswith(pattern[1:])
        else:
            found = name.startswith(pattern[:-1]) if pattern[-1:] == b"*" else name == pattern
        if found:
            return True
    return False


def walk(root, leave_out=()):
    """Yield (kind, path relative to root, full path, lstat) below `root`, parents first, in order of names. Kinds:
    f file, d directory, l link, u neither (a FIFO, a socket, a device) or a directory that cannot be read."""
    todo = [b""]
    while todo:
        relative = todo.pop()
        base = os.path.join(root, relative) if relative else root
        try:
            with os.scandir(base) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except FileNotFoundError:
            if not relative:
                raise
            continue
        except OSError:
            if not relative:
                raise
            yield b"u", relative, base, os.stat(root)  # unreadable, or deeper than a path can be long
            continue
        folders = []
        for entry in entries:
            if leave_out and is_named(entry.name, leave_out):
                continue
            name = os.path.join(relative, entry.name)
            try:
                info = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            except OSError:
                yield b"u", name, entry.path, os.stat(root)
                continue
            if stat.S_ISDIR(info.st_mode):
                if entry.path == hidden:
                    continue
                folders.append(name)
                yield b"d", name, entry.path, info
            elif stat.S_ISREG(info.st_mode):
                yield b"f", name, entry.path, info
            elif stat.S_ISLNK(info.st_mode):
                yield b"l", name, entry.path, info
            else:
                yield b"u", name, entry.path, info
        todo += reversed(folders)


OPERATIONS = {b"R": read, b"W": write, b"D": remove, b"L": list_tree, b"E": export, b"I": import_}
