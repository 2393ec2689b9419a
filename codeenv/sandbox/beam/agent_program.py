"""The agent as it is started in a Beam box: its sources in a variable, so that no list of processes shows them."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from codeenv.sandbox.python import BOX

MODULES = ("wire", "output", "processes", "files", "commands", "agent", "streams", "doors")
VARIABLE = "CODEENV_AGENT"

BOOTSTRAP = f"""
import binascii, os, sys, zlib
for name, text in eval(zlib.decompress(binascii.a2b_base64(os.environ.pop("{VARIABLE}")))):
    module = sys.modules[name] = type(sys)(name)
    parent, _, short = name.rpartition(".")
    sys.modules.setdefault(parent, type(sys)(parent))
    setattr(sys.modules[parent], short, module)
    exec(compile(text, short + ".py", "exec"), module.__dict__)
module.main()
"""


@cache
def environment() -> Mapping[str, str]:
    sources = [(f"codeenv.sandbox.box.{name}", (BOX / f"{name}.py").read_text(encoding="utf-8")) for name in MODULES]
    return {VARIABLE: base64.b64encode(zlib.compress(repr(sources).encode(), 9)).decode()}


def command(
    folder: str, *, memory: int, disk: int, processes: int, milliseconds: int, workdir: str, scratch: str, home: str
) -> list[str]:
    """Sizes in bytes, 0 for no limit."""
    numbers = map(str, (memory, disk, processes, milliseconds))
    return ["python3", "-I", "-S", "-B", "-c", BOOTSTRAP, folder, *numbers, workdir, scratch, home]


@dataclass(frozen=True)
class Facts:
    """What the agent says of the box it finds itself in."""

    pid: int
    uid: int
    python: str
    executable: str
    exposes_token: bool
    path: str

    @classmethod
    def read(cls, said: str) -> Facts:
        """:raises ValueError: it is not what an agent says, but why there is none."""
        word, _, rest = said.strip().rpartition("\n")[2].partition(" ")
        if word != "ready":
            raise ValueError(said.strip()[-500:] or "it said nothing")
        pid, uid, python, executable, exposed, path = rest.split(" ", 5)
        return cls(int(pid), int(uid), python, executable, exposed == "1", path)
