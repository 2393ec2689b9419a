"""The agent of a box into which no stream leads, only commands and their output: each request is such a command.

It is a shell that uses nothing but its builtins (CALL): it takes a free slot, rings at the door, a FIFO, with its
request, which it files first if it is long, and prints what comes out of the slot's own FIFO. A request has a number;
one that comes again, since its reply was lost on the way, is answered from memory and never carried out twice. An
answer is kept until the host says that it needs none up to its number any more. What is long goes through files, a
piece for each command.

Where it starts as root the agent stays root behind the scenes, so that no command can signal or trace it, does all its
work as an unprivileged user, and has the commands be that user for good.
"""

import binascii
import errno
import os
import select
import sys
import time

from codeenv.sandbox.box import agent, files
from codeenv.sandbox.box.streams import Streams
from codeenv.sandbox.box.wire import frames, pack, unpack

INLINE = 1500  # bytes of an answer that a shell's `read`, a system call for each of them, may take in
PIECE = 1_200_000  # bytes of an answer in one file: as text less than what one message of a server's may hold
SLOTS = 32  # requests at a time
CROWD = 20  # slots in which somebody may wait
RING = 3000  # bytes of a request that go through the door, which keeps 4096 at a time together
LOOK_SECONDS = 1.0  # after which a slot is given back though nobody rings
USER = 1000

CALL = f"""cd "${{0%/*}}" || exit 70
set -C
s=0
until {{ true >l.$s; }} 2>/dev/null; do s=$((s+1)); [ $s -lt {SLOTS} ] || {{ echo !; exit 75; }}; done
if [ ${{#2}} -le {RING} ]; then echo "$1 $s $2" >door; else printf %s "$2" >|r.$s; echo "$1 $s" >door; fi
read -r a <a.$s
echo "$a"
case $a in @*) exec cat "o.${{1%% *}}.0" ;; esac
"""
"""Arguments: the request's number and the first that is still needed; the request in base64, or `@`, its size and the
name of its file. Prints the answer: `=` and base64; or `@` and how many pieces it has, then the first of them; or `?`:
the request is not whole; or `!`: it is to come again, as slots are short."""


class Answer:
    def __init__(self):
        self.frames = bytearray()
        self.pieces = 0
        self.line = b""  # once it is there


class Doors(agent.Agent):
    def __init__(self, folder, user, processes, limits, end):
        self.folder, self.user = folder, user
        files.hidden = os.fsencode(folder)
        self.answers = {}  # request number -> Answer
        self.settled = 0  # the host needs no answer to any request below
        self.waiting = {}  # slot -> the Answer that is waited for there; the first has waited longest
        self.doors = {}  # slot -> its FIFO, open for both, so that neither side waits for the other to open
        self.unread = []  # slots into which an answer was put that may not have been taken in whole
        self.look = select.poll()
        self.look_at = 0.0
        self.rings = b""
        self.streams = Streams(self.send)
        door = self.enter("door")
        self.work_as_user()
        super().__init__(False, processes, limits, end, source=door)
        self.commands.user = user
        self.streams.poll = self.poll

    def enter(self, name):
        return os.open(os.path.join(self.folder, name), os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)

    # --- who we are --------------------------------------------------------------------------------------------------

    def work_as_user(self):
        if self.user is not None:
            os.setegid(self.user)
            os.seteuid(self.user)

    def work_as_root(self):
        if self.user is not None:
            os.seteuid(0)
            os.setegid(0)

    # --- requests ----------------------------------------------------------------------------------------------------

    def receive(self):
        self.rings += os.read(self.source, 65536)
        self.free()
        *lines, self.rings = self.rings.split(b"\n")
        for line in lines:
            try:
                self.on_ring(*line.split(None, 3))
            except (TypeError, ValueError):
                pass  # garbage: whoever rang goes without an answer
        return True

    def free(self):
        """Give back the slots whose answers have been read to their ends: when somebody rings, who wakes us anyhow."""
        held = [slot for slot in self.unread if self.holds(self.doors[slot])]
        for slot in self.unread:
            if slot not in held:
                self.remove(f"l.{slot}")
        self.unread = held
        self.look_at = time.monotonic() + LOOK_SECONDS

    def holds(self, fifo):
        self.look.register(fifo, select.POLLIN)
        found = self.look.poll(0)
        self.look.unregister(fifo)
        return bool(found)

    def on_ring(self, number, needed, slot, text=None):
        number, needed, slot = int(number), int(needed), int(slot)
        self.settled = max(self.settled, needed)
        for old in [old for old in self.answers if old < self.settled]:
            self.forget(old)
        answer = self.answers.get(number)
        if number < self.settled:
            self.deliver(slot, b"=")  # late, or sent twice, and nobody waits for it
        elif answer is None:
            request = self.take(slot, text)
            if request is None:
                self.deliver(slot, b"?")
                return
            answer = self.answers[number] = Answer()
            self.wait(slot, answer)
            self.work_as_user()
            for kind, about, body in frames(bytearray(request)):
                self.on_request(number, kind, about, unpack(body))
        elif answer.line:
            self.deliver(slot, answer.line)
        else:
            self.wait(slot, answer)

    def wait(self, slot, answer):
        self.waiting[slot] = answer
        if len(self.waiting) > CROWD:  # who comes next may want what all of these wait for
            first = next(iter(self.waiting))
            del self.waiting[first]
            self.deliver(first, b"!")

    def take(self, slot, text):
        """The request that rang, or was filed; None when it is not whole."""
        self.work_as_root()
        try:
            if text is None:
                with open(os.path.join(self.folder, f"r.{slot}"), "rb") as file:
                    text = file.read()
            if not text.startswith(b"@"):
                request = binascii.a2b_base64(text)
                return request if is_whole(request) else None
            size, name = text[1:].split()
            path = os.path.join(self.folder, os.fsdecode(name))
            with open(path, "rb") as file:
                data = file.read()
            if len(data) != int(size):
                return None
            os.unlink(path)
            return data
        except (FileNotFoundError, ValueError):
            return None
        finally:
            self.work_as_user()

    def on_request(self, number, kind, about, fields):
        """`about`: the number of the request that this one is about, else its own."""
        if kind == b"w":
            self.streams.write(number, about, fields[0], int(fields[1]))
        elif kind == b"g":
            self.streams.get(number, about, int(fields[0]))
        elif kind == b"p":
            if about not in self.answers:  # else it was cancelled before it came
                self.answers[about] = Answer()  # the command's end; a request of that number only waits for it
                self.handle(kind, about, fields)
            if about in self.streams.open:
                self.send(b"r", number, [])
            else:  # it could not be started
                self.complete(self.answers[number], self.answers[about].line)
        else:
            self.handle(kind, about, fields)
            if kind == b"k":
                self.answers.setdefault(about, Answer())  # it may have been overtaken, and then must not begin
                self.streams.close(about)
                self.send(b"f", about, [b"%d" % errno.ECANCELED, b"cancelled"])
            if about != number:
                self.send(b"r", number, [])

    def send_stream(self, request, stream):
        self.streams.add(request, stream)

    # --- answers -----------------------------------------------------------------------------------------------------

    def send(self, kind, request, fields):
        answer = self.answers.get(request)
        if answer is None or answer.line:
            return
        answer.frames += pack(kind, 0, fields)
        ends = kind != b"d"
        if len(answer.frames) >= PIECE or (ends and (answer.pieces or len(answer.frames) > INLINE)):
            try:
                self.spool(request, answer)
            except OSError as error:  # the policy has left no room
                for piece in range(answer.pieces + 1):
                    self.remove(f"o.{request}.{piece}")
                answer.frames[:] = pack(b"f", 0, [b"%d" % error.errno, error.strerror.encode()])
                answer.pieces, ends = 0, True
        if ends and answer.pieces:
            self.complete(answer, b"@%d" % answer.pieces)
        elif ends:
            self.complete(answer, b"=" + binascii.b2a_base64(answer.frames, newline=False))
            answer.frames.clear()

    def complete(self, answer, line):
        answer.line = line
        for slot in [slot for slot, awaited in self.waiting.items() if awaited is answer]:
            del self.waiting[slot]
            self.deliver(slot, line)

    def spool(self, number, answer):
        self.work_as_root()
        try:
            while answer.frames:
                piece = binascii.b2a_base64(answer.frames[:PIECE])
                with open(os.path.join(self.folder, f"o.{number}.{answer.pieces}"), "wb") as file:
                    file.write(piece)
                del answer.frames[:PIECE]
                answer.pieces += 1
        finally:
            self.work_as_user()

    def deliver(self, slot, line):
        self.work_as_root()
        if slot not in self.doors:
            self.doors[slot] = self.enter(f"a.{slot}")
        self.work_as_user()
        os.write(self.doors[slot], line + b"\n")
        self.unread.append(slot)
        self.look_at = time.monotonic() + LOOK_SECONDS

    def forget(self, number):
        for piece in range(self.answers.pop(number).pieces):
            self.remove(f"o.{number}.{piece}")

    def remove(self, name):
        self.work_as_root()
        try:
            os.unlink(os.path.join(self.folder, name))
        except FileNotFoundError:
            pass
        finally:
            self.work_as_user()

    # --- the loop ----------------------------------------------------------------------------------------------------

    def on_pipe(self, fd):
        if not self.streams.on_event(fd):
            super().on_pipe(fd)

    def deadlines(self):
        return [*super().deadlines(), *self.streams.deadlines(), *([self.look_at] if self.unread else [])]

    def on_time(self, now):
        super().on_time(now)
        self.streams.on_time(now)
        if self.unread and now >= self.look_at:
            self.free()


def is_whole(request):
    inbox = bytearray(request)
    return bool(list(frames(inbox))) and not inbox


def main():
    """Arguments: our folder, memory, disk, processes (0: no limit), milliseconds to live, the work directory, the
    scratch directory, the home directory. Prints what the box is like once requests can come, and goes on unseen."""
    folder, memory, disk, processes, milliseconds = sys.argv[1], *map(int, sys.argv[2:6])
    home = sys.argv[8]
    user = USER if os.getuid() == 0 else None
    ready, tell = os.pipe()
    if os.fork():
        os.close(tell)
        said = b""
        while data := os.read(ready, 65536):
            said += data
        os.write(1, said)
        os._exit(0 if said.startswith(b"ready ") else 1)
    os.close(ready)
    os.setsid()
    try:
        os.mkdir(folder, 0o700)
        for name in sys.argv[6:]:
            os.makedirs(name, exist_ok=True)
        if user is not None:
            os.setgroups([])
            for name in (sys.argv[6], home):
                give(name, user)
        for name in ("door", *(f"a.{slot}" for slot in range(SLOTS))):
            os.mkfifo(os.path.join(folder, name), 0o600)
        with open(os.path.join(folder, "call"), "w") as file:
            file.write(CALL)
        exposed = exposes_token()
        null = os.open(os.devnull, os.O_RDWR)
        log = os.open(os.path.join(folder, "log"), os.O_WRONLY | os.O_CREAT, 0o600)
        for fd, place in ((null, 0), (null, 1), (log, 2)):
            os.dup2(fd, place)
        agent.reset_signals()
        agent.go_first()

        def make(contained, processes, limits, end):
            doors = Doors(folder, user, processes, limits, end)
            version = ".".join(map(str, sys.version_info[:3]))
            path = os.environ.get("PATH", os.defpath)
            facts = f"ready {os.getpid()} {os.getuid()} {version} {sys.executable} {int(exposed)} {path}\n"
            doors.work_as_root()
            with open(os.path.join(folder, "facts"), "w") as file:
                file.write(facts)
            doors.work_as_user()
            os.write(tell, os.fsencode(facts))
            os.close(tell)
            return doors

        agent.serve(False, memory, processes, disk, milliseconds, [folder], make, own_user=True)
    except BaseException as error:
        os.write(tell, f"{type(error).__name__}: {error}\n".encode("utf-8", "replace"))
        os._exit(1)


def give(folder, user):
    """Let a directory be the user's with all that is in it: a script that prepared an image has left it to root."""
    os.chown(folder, user, user)
    for place, folders, names in os.walk(folder):
        for name in folders + names:
            os.chown(os.path.join(place, name), user, user, follow_symlinks=False)


def exposes_token():
    """Whether a token of the account's is in the environment that commands could read: ours, or that of process 1."""
    texts = [os.environb]
    try:
        with open("/proc/1/environ", "rb") as file:
            texts.append(dict(pair.partition(b"=")[::2] for pair in file.read().split(b"\0")))
    except OSError:
        pass
    return any(variables.get(name) for variables in texts for name in (b"BETA9_TOKEN", b"BEAM_TOKEN"))
