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
            raise OSError(errno.EFBIG, "%d bytes, more than the limit of %d" % (size, left))
        while left >= 0:  # /proc files have size 0 and content all the same: count while reading
            data = file.read(CHUNK)
            if not data:
                return []
            left -= len(data)
            send([data])
        raise OSError(errno.EFBIG, "more than the limit of %d bytes" % int(limit))


def write(send, path, mode, append, data):
    make_parent(path)
    flags = os.O_APPEND if append == b"1" else os.O_TRUNC
    # O_NONBLOCK: opening a FIFO without a reader is an error, not a wait.
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK | flags, 0o666)
    with open(fd, "wb", buffering=0) as file:
        must_be_regular(fd)
        if mode:
            os.fchmod(fd, int(mode))
        view = memoryview(data)
        while view:
            view = view[file.write(view) :]
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
            raise OSError(errno.E2BIG, "more than the limit of %d entries" % int(limit))
        send([kind, relative, b"%d" % stat.S_IMODE(info.st_mode), b"%d" % info.st_size])
    return []


def export(send, path, max_bytes, max_entries):
    """One `d` frame an entry: kind, path, mode, content (of a link: its target); long files go on as `+`."""
    bytes_left, entries_left = int(max_bytes), int(max_entries)
    for kind, relative, full, info in walk(path):
        entries_left -= 1
        bytes_left -= info.st_size if kind == b"f" else 0
        if entries_left < 0:
            raise OSError(errno.E2BIG, "more than %d files" % int(max_entries))
        if bytes_left < 0:
            raise OSError(errno.EFBIG, "more than %d bytes" % int(max_bytes))
        mode = b"%d" % stat.S_IMODE(info.st_mode)
        if kind == b"l":
            send([kind, relative, mode, os.readlink(full)])
        elif kind != b"f":
            send([kind, relative, mode, b""])
        else:
            export_file(send, relative, full, mode, info.st_size)
    return []


def export_file(send, relative, full, mode, size):
    try:
        file = open_regular(full)
    except PermissionError:
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
        if kind == b"d":
            os.makedirs(path, exist_ok=True)
            os.chmod(path, int(mode) | 0o700)
        elif kind == b"l":
            make_parent(path)
            os.symlink(data, path)
        else:
            write(send, path, mode, b"1" if kind == b"+" else b"0", data)
    return []


def must_be_regular(fd):
    mode = os.fstat(fd).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "not a regular file")


def open_regular(path):
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        must_be_regular(fd)
    except OSError:
        os.close(fd)
        raise
    return open(fd, "rb", buffering=0)


def make_parent(path):
    parent = os.path.dirname(path)
    if parent:
        os.makedirs(parent, exist_ok=True)


def remove_tree(path):
    for entry in os.scandir(path):
        if entry.is_dir(follow_symlinks=False):
            remove_tree(entry.path)
        else:
            os.unlink(entry.path)
    os.rmdir(path)


def walk(root):
    """Yield (kind, path relative to root, full path, lstat) below `root`, parents first, in order of names. Kinds:
    f file, d directory, l link, u unreadable or neither (a FIFO, a socket, a device)."""
    todo = [b""]
    while todo:
        relative = todo.pop()
        base = os.path.join(root, relative) if relative else root
        try:
            entries = sorted(os.scandir(base), key=lambda entry: entry.name)
        except PermissionError:
            yield b"u", relative, base, os.lstat(base)
            continue
        folders = []
        for entry in entries:
            name = os.path.join(relative, entry.name)
            try:
                info = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            if stat.S_ISDIR(info.st_mode):
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
