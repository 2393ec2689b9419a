"""What a Beam server does with a box's files, as our gateway plays it; runs in the box. Fields and answers are bytes.
An error's text is what the server says of it after naming what it was about to do."""

import os
import stat

# The bits that the server's language has for kinds of file, beside the permissions.
KINDS = {
    stat.S_IFDIR: 1 << 31, stat.S_IFLNK: 1 << 27, stat.S_IFBLK: 1 << 26, stat.S_IFIFO: 1 << 25, stat.S_IFSOCK: 1 << 24,
    stat.S_IFCHR: 1 << 26 | 1 << 21,
}  # fmt: skip
SPECIAL = {stat.S_ISUID: 1 << 23, stat.S_ISGID: 1 << 22, stat.S_ISVTX: 1 << 20}


def operate(name, path, *rest):
    """Do one file operation; the path is absolute. :raises OSError: with the text to tell."""
    try:
        return OPERATIONS[name](path, *rest)
    except OSError as error:
        verb = VERBS.get(name, "open")
        raise OSError(0, f"{verb} {os.fsdecode(path)}: {os.strerror(error.errno or 5).lower()}") from None


def upload(path, mode, offset, data, moved):
    """`moved`: written elsewhere, moved here and given the mode, as where boxes are gVisor's; else written in place,
    so that an existing file keeps its mode and the mask applies."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    at = int(offset)
    if moved == b"1" and at == 0:
        if os.path.isdir(path):
            path = os.path.join(path, b"upload")
        aside = os.path.join(os.path.dirname(path), b".upload-%d" % id(data))
        with open(aside, "wb") as file:
            file.write(data)
        os.replace(aside, path)
    else:
        flags = os.O_WRONLY | os.O_CREAT | (0 if at else os.O_TRUNC)
        with open(os.open(path, flags, int(mode) & 0o777), "wb") as file:
            file.seek(at)
            file.write(data)
    if moved == b"1":
        os.chmod(path, int(mode) & 0o7777)
    return []


def download(path, offset, length):
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:  # a FIFO would keep all others waiting
        if int(offset):
            file.seek(int(offset))
        return [file.read(int(length) or -1) or b""]


def about(path, info):
    mode = info.st_mode & 0o777 | KINDS.get(stat.S_IFMT(info.st_mode), 0)
    mode |= sum(bit for flag, bit in SPECIAL.items() if info.st_mode & flag)
    numbers = [mode, info.st_size, int(info.st_mtime), info.st_uid, info.st_gid, int(stat.S_ISDIR(info.st_mode))]
    return [os.path.basename(path), *(str(number).encode() for number in numbers)]


def listing(path):
    found = []
    for name in sorted(os.listdir(path)):
        found += about(name, os.lstat(os.path.join(path, name)))
    return found


def make_directory(path, mode):
    os.makedirs(path, int(mode) & 0o777, exist_ok=True)
    return []


def remove(path):
    if os.path.isdir(path) and not os.path.islink(path):
        for directory, directories, names in os.walk(path, topdown=False):
            for name in names:
                os.unlink(os.path.join(directory, name))
            for name in directories:
                below = os.path.join(directory, name)
                (os.unlink if os.path.islink(below) else os.rmdir)(below)
        os.rmdir(path)
    elif os.path.lexists(path):
        os.unlink(path)
    return []


def files_below(path):
    if os.path.isfile(path):
        yield path
    for directory, _, names in os.walk(path):
        for name in sorted(names):
            if os.path.isfile(below := os.path.join(directory, name)):
                yield below


def replace(path, pattern, new):
    import re

    wanted = re.compile(pattern)
    template = re.sub(rb"\\", rb"\\\\", new)  # of Go: $1, ${1}, ${name}, and $$ for a dollar
    template = re.sub(rb"\$(?:(\$)|\{?(\w+)\}?)", lambda hit: b"$" if hit[1] else b"\\g<" + hit[2] + b">", template)
    for name in files_below(path):
        with open(name, "rb") as file:
            text = file.read()
        with open(name, "wb") as file:
            file.write(wanted.sub(template, text))
    return []


def search(path, pattern):
    """For each hit: path, line from 1, column from 1, its last column, and its text."""
    import re

    wanted = re.compile(pattern)
    found = []
    for name in files_below(path):
        with open(name, "rb") as file:
            for number, line in enumerate(file, 1):
                for hit in wanted.finditer(line.rstrip(b"\n")):
                    places = (number, hit.start() + 1, hit.end())
                    found += [name, *(str(place).encode() for place in places), hit[0]]
    return found


VERBS = {b"stat": "stat", b"mkdir": "mkdir", b"remove": "unlinkat"}
OPERATIONS = {
    b"upload": upload, b"download": download, b"stat": lambda path: about(path, os.stat(path)), b"list": listing,
    b"mkdir": make_directory, b"remove": remove, b"replace": replace, b"search": search,
}  # fmt: skip
