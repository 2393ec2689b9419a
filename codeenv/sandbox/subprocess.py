"""`unsafe-subprocess`: the same agent as a plain process of the user's, in a temporary directory. It isolates nothing:
commands run with all the rights of whoever started us. It serves as the measure of what isolation costs, and those who
are already inside a machine made for this. Only ever by its full name."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from codeenv.sandbox.api import Capabilities, MiB, Probe, Sandbox, SandboxSpec, UnsupportedSpec
from codeenv.sandbox.local import Launch, LocalSandbox, start_box
from codeenv.sandbox.packages import resolve_packages
from codeenv.sandbox.python import resolve_python


class SubprocessProvider:
    """Implements `codeenv.sandbox.api.SandboxProvider`. A box's directories are real ones, so `workdir` is not the spec's."""

    name = "unsafe-subprocess"

    def probe(self) -> Probe:
        if not sys.platform.startswith("linux"):
            return Probe(self.name, False, "it needs Linux (/proc, PR_SET_CHILD_SUBREAPER)")
        notes = ("isolates nothing: commands run as you, with your files and your network",)
        capabilities = Capabilities("none", memory="soft", processes="none", disk="none", cpus="none", network_off=False, notes=notes)  # fmt: skip
        return Probe(self.name, True, "", capabilities, {"python": resolve_python().version})

    def check(self, spec: SandboxSpec) -> None:
        for name in ("image", "gpu", "cpus"):
            if getattr(spec, name) is not None:
                raise UnsupportedSpec(f"sandbox 'unsafe-subprocess' cannot provide `{name}`")
        resolve_packages(spec.packages, resolve_python(spec.python))

    @asynccontextmanager
    async def create(self, spec: SandboxSpec) -> AsyncIterator[Sandbox]:
        box = await self.open(spec)
        try:
            yield box
        finally:
            await box.close()

    async def open(self, spec: SandboxSpec) -> Sandbox:
        self.check(spec)
        python = resolve_python(spec.python)
        packages = resolve_packages(spec.packages, python)

        def make() -> LocalSandbox:
            root = Path(tempfile.mkdtemp(prefix="codeenv-"))
            workdir, home, scratch = str(root / "workspace"), str(root / "home"), str(root / "tmp")
            # A disk or process ceiling would bind the user, not the box: there is none. The agent removes `root` as it ends.
            numbers = [spec.memory_mb * MiB, 0, 0, round(spec.ttl_seconds * 1000)]
            command = [*python.command, *map(str, numbers), workdir, home, scratch, str(root)]
            env = {"HOME": home, "TMPDIR": scratch, **({"PYTHONPATH": str(packages)} if packages else {}), **spec.env}
            launch = Launch(command, workdir=workdir, scratch=scratch)
            return LocalSandbox(spec.model_copy(update={"env": env}), python, launch)

        return await start_box(make)
