"""What the local sandbox costs over the floor: the same work by bare subprocesses, without isolation."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import anyio
from measure import alternate, options, report

from codeenv.sandbox import get_provider
from codeenv.sandbox.api import SandboxSpec
from codeenv.sandbox.python import resolve_python

PAYLOAD = b"x" * 4096


async def main() -> None:
    wanted = options(__doc__ or "")
    rounds = wanted.rounds or 60
    provider = get_provider("bubblewrap")
    spec = SandboxSpec()
    python = resolve_python().executable
    rows: list[dict[str, object]] = []

    def row(work: str, floor: str, medians: dict[str, float], bound: str) -> None:
        ours, bare = medians["box"], medians["floor"]
        rows.append(
            {"work": work, "floor": floor, "floor ms": bare, "box ms": ours, "over ms": ours - bare, "bound ms": bound}
        )

    async def create_and_destroy() -> None:
        async with provider.create(spec):
            pass

    async def start_python() -> None:
        await anyio.run_process([python, "-I", "-S", "-B", "-c", "pass"])

    medians = await alternate({"floor": start_python, "box": create_and_destroy}, rounds=rounds)
    row("create and destroy", "start its Python", medians, "25")

    with tempfile.TemporaryDirectory() as folder:
        async with provider.create(spec) as box:
            pairs = {
                "exec true": (lambda: anyio.run_process(["true"]), lambda: box.exec(["true"]), "2"),
                "exec bash -c": (lambda: anyio.run_process(["bash", "-c", ":"]), lambda: box.exec(":"), ""),
                "exec python3 -c pass": (
                    lambda: anyio.run_process([python, "-c", "pass"]),
                    lambda: box.exec(["python3", "-c", "pass"]),
                    "",
                ),
                "write 4 KiB": (
                    lambda: anyio.Path(folder, "f").write_bytes(PAYLOAD),
                    lambda: box.write_file("f", PAYLOAD),
                    "",
                ),
                "read 4 KiB": (lambda: anyio.Path(folder, "f").read_bytes(), lambda: box.read_file("f"), ""),
            }
            for work, (floor, ours, bound) in pairs.items():
                row(work, "bare", await alternate({"floor": floor, "box": ours}, rounds=rounds), bound)
    notes = [f"medians of {rounds} rounds, box and floor in turn; Python {sys.version.split()[0]}, {Path(python).name}"]
    report("Local sandbox against bare processes", rows, as_json=wanted.json, notes=notes)


anyio.run(main)
