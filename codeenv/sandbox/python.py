"""The Python inside a local box: found on the host by asking it, bound read-only."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from codeenv.sandbox.api import UnsupportedSpec

BOX = Path(__file__).parent / "box"
MODULES = ("wire", "output", "processes", "files", "commands", "agent", "namespaces", "nursery")
"""What the agent and the nursery of agents consist of, each importing only from those before it."""

DESCRIBE = """
import json, marshal, os, site, sys, sysconfig
sources = json.load(sys.stdin)
paths = sysconfig.get_paths(vars={"base": sys.base_prefix, "platbase": sys.base_exec_prefix})
folders = site.getsitepackages([sys.base_prefix]) + [paths["purelib"], paths["platlib"]]
if sys.base_prefix == "/usr":
    folders += ["/usr/lib/python3/dist-packages", "/usr/local/lib/python%d.%d/dist-packages" % sys.version_info[:2]]
code = [(name, compile(text, name.rpartition(".")[2] + ".py", "exec")) for name, text in sources]
executable = os.path.realpath(getattr(sys, "_base_executable", "") or sys.executable)
if not executable.startswith(os.path.realpath(sys.base_prefix) + "/"):
    executable = os.path.join(sys.base_prefix, "bin", "python%d.%d" % sys.version_info[:2])
json.dump({
    "executable": executable,
    "prefixes": sorted({os.path.realpath(p) for p in (sys.base_prefix, sys.base_exec_prefix)}),
    "version": "%d.%d.%d" % sys.version_info[:3],
    "site": list(dict.fromkeys(os.path.realpath(f) for f in folders if os.path.isdir(f))),
    "tag": sys.implementation.cache_tag + "-" + sysconfig.get_platform(),
    "agent": marshal.dumps(code).hex(),
}, sys.stdout)
"""

BOOTSTRAP = """
import marshal, os, sys
def take(n, data=b""):
    while len(data) < n:
        more = os.read(0, n - len(data))
        if not more: os._exit(0)
        data += more
    return data
for name, code in marshal.loads(take(int.from_bytes(take(4), "big"))):
    module = sys.modules[name] = type(sys)(name)
    parent, _, short = name.rpartition(".")
    if parent not in sys.modules: sys.modules[parent] = type(sys)(parent)
    setattr(sys.modules[parent], short, module)
    exec(code, module.__dict__)
sys.modules["codeenv.sandbox.box." + sys.argv.pop(1)].main()
"""
"""What the box's Python is started with: it takes the compiled modules from its standard input and becomes one."""


@dataclass(frozen=True)
class BoxPython:
    """A Python as it will be seen inside a box, at the same paths as on the host."""

    executable: str
    prefixes: tuple[str, ...]
    version: str
    site: tuple[str, ...]
    """Its package directories: hidden, so that a box sees a clean site; the first takes the box's packages."""
    tag: str
    agent: bytes
    """The agent, compiled by this Python, framed as BOOTSTRAP reads it."""

    @property
    def command(self) -> list[str]:
        return self.run("agent")

    def run(self, module: str) -> list[str]:
        return [self.executable, "-I", "-S", "-B", "-c", BOOTSTRAP, module]


def resolve_python(name: str | None = None) -> BoxPython:
    """Find a Python: None is the one we run under, `3.12` is `python3.12` on PATH, else a command or a path. Shims and
    virtual environments are followed to the installation behind them.

    :raises UnsupportedSpec: it is not there, does not run, or is older than 3.9.
    """
    if name is None:
        return _describe(sys.executable)
    return _describe(f"python{name}" if name[:1].isdigit() else name)


@lru_cache(maxsize=16)
def _describe(command: str) -> BoxPython:
    sources: Sequence[tuple[str, str]] = [
        (f"codeenv.sandbox.box.{name}", (BOX / f"{name}.py").read_text(encoding="utf-8")) for name in MODULES
    ]
    try:
        done = subprocess.run(
            [command, "-I", "-c", DESCRIBE], input=json.dumps(sources), capture_output=True, text=True, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnsupportedSpec(f"python {command!r} cannot be used in a box: {error}") from error
    if done.returncode != 0:
        raise UnsupportedSpec(f"python {command!r} cannot be used in a box: {done.stderr.strip()[-500:]}")
    try:
        found = json.loads(done.stdout.rpartition("\n")[2])  # a .pth file of the host's may have printed before
    except ValueError as error:
        raise UnsupportedSpec(f"{command!r} is not a Python: it answers {done.stdout[:200]!r}") from error
    if tuple(int(part) for part in found["version"].split(".")[:2]) < (3, 9):
        raise UnsupportedSpec(f"python {command!r} is {found['version']}; a box needs 3.9 or newer")
    if "/" in found["prefixes"]:
        raise UnsupportedSpec(
            f"python {command!r} is installed at the root of the file system: it cannot be bound alone"
        )
    agent = bytes.fromhex(found["agent"])
    return BoxPython(
        found["executable"],
        tuple(found["prefixes"]),
        found["version"],
        tuple(found["site"]),
        found["tag"],
        len(agent).to_bytes(4, "big") + agent,
    )
