"""What is kept of a command's output. Runs inside the box."""

import os

CHUNK = 65536


class Tail:
    """The first and the last bytes of a stream; once it is cut, the whole of it goes to a file in the box."""

    def __init__(self, limit, save_path, save_limit):
        self.half = limit // 2
        self.head_limit = limit - self.half
        self.head, self.tail = bytearray(), bytearray()
        self.total = 0
        self.save_path, self.save_limit = save_path, save_limit
        self.file, self.saved = -1, 0

    def add(self, data):
        self.total += len(data)
        overflow = self.total > self.head_limit + self.half
        if overflow and self.file == -1 and self.save_path:
            self.open_file()
        if self.file >= 0:
            self.save(data)
        room = self.head_limit - len(self.head)
        if room > 0:
            self.head += data[:room]
            data = data[room:]
        self.tail += data
        if len(self.tail) > 4 * self.half + CHUNK:
            del self.tail[: len(self.tail) - self.half]

    def open_file(self):
        # O_EXCL: whatever the policy put at this name (a FIFO, a link) is not opened, the text is then not saved.
        self.file = -2
        try:
            os.makedirs(os.path.dirname(self.save_path), exist_ok=True)
            self.file = os.open(self.save_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
        except OSError:
            return
        self.save(self.head)
        self.save(self.tail)

    def save(self, data):
        data = data[: self.save_limit - self.saved]
        try:
            written = os.write(self.file, data) if data else 0
        except OSError:
            written = 0
        self.saved += written
        if written < len(data):  # the box's disk is full: what fits is kept, and nothing after the gap
            self.save_limit = self.saved

    def finish(self):
        if self.file >= 0:
            os.close(self.file)
            self.file = -2
        if self.total > self.head_limit + self.half:
            del self.tail[: max(0, len(self.tail) - self.half)]
        return bytes(self.head + self.tail)


def read_some(fd, limit=CHUNK):
    """Bytes, at most `limit`; empty at the end of the stream; None when there is nothing to read now."""
    try:
        return os.read(fd, limit)
    except BlockingIOError:
        return None
