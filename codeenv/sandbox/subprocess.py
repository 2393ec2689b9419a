"""`unsafe-subprocess`: the same agent as a plain process of the user's, in a temporary directory. It isolates nothing:
commands run with all the rights of whoever started us. It serves as the measure of what isolation costs, and those who
are already inside a machine made for this. Only ever by its full name."""

from __future__ import annotations

import shutil
import sys
import tempfile
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from codeenv.sandbox.api import Capabilities, MiB, Probe, Sandbox, SandboxSpec, UnsupportedSpec, opened
from codeenv.sandbox.launch import Launch
from codeenv.sandbox.local import LocalSandbox, start_box
from codeenv.sandbox.packages import prepare, prepared
from codeenv.sandbox.python import resolve_python


class SubprocessProvider:
    """Implements `codeenv.sandbox.api.SandboxProvider`. A box's directories are real ones: `workdir` is not the
    spec's."""

    name = "unsafe-subprocess"

    def probe(self) -> Probe:
        if not sys.platform.startswith("linux"):
            return Probe(self.name, False, "it needs Linux (/proc, PR_SET_CHILD_SUBREAPER)")
        return Probe(self.name, True, "", self.capabilities, {"python": resolve_python().version})

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            isolation="none",
            memory="soft",
            processes="none",
            disk="none",
            cpus="none",
            network_off=False,
            shares_host=True,
            notes=("isolates nothing: commands run as you, with your files and your network",),
        )

    def check(self, spec: SandboxSpec) -> None:
        _refuse(spec)
        prepare(spec)

    def create(self, spec: SandboxSpec) -> AbstractAsyncContextManager[Sandbox]:
        return opened(self, spec)

    async def open(self, spec: SandboxSpec) -> Sandbox:
        _refuse(spec)
        python, packages = await prepared(spec)

        def make() -> LocalSandbox:
            root = Path(tempfile.mkdtemp(prefix="codeenv-"))
            workdir, home, scratch = str(root / "workspace"), str(root / "home"), str(root / "tmp")
            # A disk or process ceiling would bind the user, not the box: there is none. The agent removes `root` as it
            # ends, also when we are dead; what is left of an agent that was itself killed, we remove.
            numbers = [spec.memory_mb * MiB, 0, 0, round(spec.ttl_seconds * 1000)]
            command = [*python.command, *map(str, numbers), workdir, home, scratch, str(root)]
            env = {"HOME": home, "TMPDIR": scratch, **({"PYTHONPATH": str(packages)} if packages else {}), **spec.env}
            launch = Launch(command, python.agent, workdir=workdir, scratch=scratch, on_close=lambda: _remove(root))
            return LocalSandbox(spec.model_copy(update={"env": env}), python, launch)

        return await start_box(make)


def _remove(root: Path) -> None:
    try:
        root.rmdir()  # of a box that was never there: to look inside takes a descriptor, and there may be none
    except OSError:
        shutil.rmtree(root, ignore_errors=True)


def _refuse(spec: SandboxSpec) -> None:
    for name in ("image", "gpu", "cpus"):
        if getattr(spec, name) is not None:
            raise UnsupportedSpec(f"sandbox 'unsafe-subprocess' cannot provide `{name}`")
