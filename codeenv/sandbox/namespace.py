"""A view of the host for boxes that root starts.

RLIMIT_NPROC does not bind root, so a box of root's runs under an unprivileged uid of its own. That uid
cannot walk to a Python that lives below a private home. So root makes a mount namespace in which the needed
directories are bound at short public paths, keeps it by a descriptor alone, and starts each box in it. Nothing is left
when we end.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from functools import lru_cache

from codeenv.sandbox.api import SandboxUnavailable

FIRST_UID, UIDS = 2_000_000_000, 100_000_000  # above every range that user databases and containers hand out
PLACES = ("/mnt", "/media", "/srv", "/opt")
SCRIPT = """
place=$1; shift
mount -t tmpfs -o mode=755,size=1m tmpfs "$place"
n=0
for path; do
  if [ -d "$path" ]; then mkdir "$place/$n"; else : > "$place/$n"; fi
  mount --rbind "$path" "$place/$n"
  n=$((n+1))
done
echo ready
read -r _
"""


def view(paths: tuple[str, ...]) -> tuple[int, dict[str, str]]:
    """A descriptor of a mount namespace that shows `paths`, and where each of them is there.

    :raises SandboxUnavailable: root may not make mount namespaces here, or util-linux is missing.
    """
    # By identity: a bound directory that was made anew under its old name would be seen empty for ever.
    return _view(paths, tuple((info.st_dev, info.st_ino) for info in map(os.stat, paths)))


@lru_cache(maxsize=64)
def _view(paths: tuple[str, ...], identities: tuple[tuple[int, int], ...]) -> tuple[int, dict[str, str]]:
    place = next((p for p in PLACES if os.path.isdir(p) and not any(path.startswith(p + "/") for path in paths)), None)
    if place is None or not all(shutil.which(tool) for tool in ("unshare", "nsenter", "mount")):
        raise SandboxUnavailable("running as root needs `unshare`, `nsenter` and `mount` of util-linux", stage="probe")
    command = ["unshare", "--mount", "--propagation", "private", "sh", "-ec", SCRIPT, "sh", place, *paths]
    maker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert maker.stdin is not None
    assert maker.stdout is not None
    assert maker.stderr is not None
    with maker:
        if maker.stdout.readline() != b"ready\n":
            reason = maker.stderr.read().decode("utf-8", "replace").strip()
            raise SandboxUnavailable(f"root could not make a mount namespace: {reason}", stage="probe")
        namespace = os.open(f"/proc/{maker.pid}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
        maker.stdin.close()
    return namespace, {path: f"{place}/{number}" for number, path in enumerate(paths)}


def first_of(many: int) -> int:
    """The first of so many uids which no other box has."""
    return FIRST_UID + secrets.randbelow(UIDS // many) * many


def enter(namespace: int, user: int | None = None) -> list[str]:
    """The command prefix that enters such a view as `user`, else as a uid which no other box has."""
    uid = str(first_of(1) if user is None else user)
    return ["nsenter", f"--mount=/proc/self/fd/{namespace}", "--setuid", uid, "--setgid", uid]
