"""What the two boxes' Pythons are started with: our modules, compiled here if the box's Python reads our byte-code."""

from __future__ import annotations

import importlib.util
import marshal
from functools import lru_cache
from pathlib import Path

BOX = Path(__file__).parent / "box"
PACKAGE = "codeenv.grading.functions.box"
SHARED = ("codec", "link", "names", "special", "inspecting", "standin", "peer")
MODULES = {
    "solution": (*SHARED, "solution", "runner"),
    "tests": (*SHARED, "tests", "light", "framework", "runner"),
}
"""What each side consists of, each module importing only from those before it."""

BOOTSTRAP = """
import marshal, os, sys
def take(size):
    data = b""
    while len(data) < size:
        more = os.read(0, size - len(data))
        if not more: os._exit(0)
        data += more
    return data
number = take(8)
magic = sys.modules["_frozen_importlib_external"].MAGIC_NUMBER
parts = marshal.loads(take(int.from_bytes(number, "big")))
modules = marshal.loads(parts[1]) if parts[0] == magic else [(n, compile(t, n, "exec")) for n, t in parts[2]]
package = ""
for part in (PACKAGE).split("."):
    package = (package + "." + part).lstrip(".")
    sys.modules[package] = type(sys)(package)
    sys.modules[package].__path__ = []
    above, _, name = package.rpartition(".")
    if above: setattr(sys.modules[above], name, sys.modules[package])
for name, code in modules:
    module = sys.modules[name] = type(sys)(name)
    setattr(sys.modules[package], name.rpartition(".")[2], module)
    exec(code, module.__dict__)
sys.modules[package].runner.main(sys.argv[1], int(sys.argv[2]))
""".replace("PACKAGE", repr(PACKAGE))


@lru_cache(maxsize=2)
def program(role: str) -> bytes:
    """The modules of a side (`solution` or `tests`), framed as BOOTSTRAP reads them from its standard input."""
    sources = [(f"{PACKAGE}.{name}", (BOX / f"{name}.py").read_text(encoding="utf-8")) for name in MODULES[role]]
    code = [(name, compile(text, name.rpartition(".")[2] + ".py", "exec")) for name, text in sources]
    data = marshal.dumps((importlib.util.MAGIC_NUMBER, marshal.dumps(code), sources))
    return len(data).to_bytes(8, "big") + data


def command(role: str, epoch: int = 0, *, fresh: bool = False) -> list[str]:
    """How a side's Python is started: without `site`, which the solution's side sees to itself, as a box's agent is
    such a Python and makes another of itself in a fifth of the time that one takes to start; `fresh`: it is started."""
    flags = ["-I", "-B", "-S"] if fresh else ["-I", "-S", "-B"]  # the agent knows its own, in this order
    return ["python3", *flags, "-c", BOOTSTRAP, role, str(epoch)]
