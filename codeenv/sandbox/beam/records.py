"""What runs leave written down, so that boxes of a dead one can be found: one small file for each process and account.
No token is ever in it."""

from __future__ import annotations

import atexit
import hashlib
import logging
import os
import socket
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import platformdirs
from pydantic import BaseModel, ConfigDict, ValidationError

from codeenv.sandbox.beam.sdk import Account

logger = logging.getLogger(__name__)


def folder() -> Path:
    """`$CODEENV_STATE_DIR`, else the user's state directory."""
    root = os.environ.get("CODEENV_STATE_DIR") or platformdirs.user_state_dir("codeenv")
    return Path(root) / "beam"


def fingerprint(account: Account) -> str:
    """The same for the same token, which it does not tell."""
    return hashlib.sha256(f"codeenv {account.token}".encode()).hexdigest()[:12]


class Run(BaseModel):
    """A process that makes boxes on one account."""

    model_config = ConfigDict(frozen=True)

    gateway: str
    account: str
    """Its `fingerprint`."""
    host: str
    boot: str = ""
    namespace: str = ""
    """Where the pid means anything: one start of the machine, one namespace. Empty where there is no /proc."""
    pid: int
    born: str = ""
    since: float
    """Seconds since 1970."""
    stubs: tuple[str, ...] = ()

    @classmethod
    def of_this_process(cls, account: Account) -> Run:
        host, boot, namespace = _here()
        pid = os.getpid()
        return cls(
            gateway=str(account), account=fingerprint(account), host=host, boot=boot, namespace=namespace, pid=pid,
            born=_born(pid), since=time.time(),
        )  # fmt: skip

    @property
    def lives(self) -> bool | None:
        """None: it cannot be seen from here."""
        host, boot, namespace = _here()
        if self.host != host:
            return None
        if self.boot != boot:
            return False
        if self.namespace != namespace:
            return None
        if self.born:
            return _born(self.pid) == self.born
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
        return True


class Record:
    """This process's file about one account: written before a box is made, gone at the process's end when no box is."""

    def __init__(self, account: Account) -> None:
        self._run = Run.of_this_process(account)
        self._path = folder() / f"{uuid.uuid4().hex}.json"
        self._boxes: set[str] = set()
        self._written = False
        atexit.register(self._forget)

    @property
    def pid(self) -> int:
        return self._run.pid

    def will_make(self, stub: str) -> None:
        """Note that boxes of this stub are ours."""
        if stub in self._run.stubs:
            return
        self._run = self._run.model_copy(update={"stubs": (*self._run.stubs, stub)})
        try:
            _write(self._path, self._run.model_dump_json())
            self._written = True
        except OSError as error:
            logger.warning("sandbox: this run's boxes cannot be noted for `codeenv sandboxes`: %s", error)

    def made(self, name: str) -> None:
        """There is, or may be, a box that somebody has to end."""
        self._boxes.add(name)

    def ended(self, name: str) -> None:
        self._boxes.discard(name)

    def _forget(self) -> None:
        if os.getpid() == self.pid and self._written and not self._boxes:
            self._path.unlink(missing_ok=True)


_records: dict[tuple[str, str, Path], Record] = {}


def record_of(account: Account) -> Record:
    """The one of this process, which may be a fork of another's."""
    key = (str(account), fingerprint(account), folder())
    if key not in _records or _records[key].pid != os.getpid():
        _records[key] = Record(account)
    return _records[key]


def all_runs() -> Iterator[tuple[Path, Run]]:
    """Every run that is written down, and where."""
    for path in sorted(folder().glob("*.json")):
        try:
            yield path, Run.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            continue
        except (OSError, ValidationError) as error:
            logger.warning("sandbox: %s cannot be read: %s", path, error)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    number, temporary = tempfile.mkstemp(dir=path.parent, prefix=".")
    with os.fdopen(number, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(temporary, path)


def _here() -> tuple[str, str, str]:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return socket.gethostname(), boot, os.readlink("/proc/self/ns/pid")
    except OSError:
        return socket.gethostname(), "", ""


def _born(pid: int) -> str:
    """When a process started, on the kernel's clock; empty when it is no more, or there is no /proc."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]
