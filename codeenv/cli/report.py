"""`codeenv report`: one HTML file that shows a run, or an episode."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from codeenv.cli.options import AsJson
from codeenv.cli.terminal import clear_errors, console, print_json

SHOWN = 5  # files that could not be read


def report(
    source: Annotated[Path, typer.Argument(metavar="FILE|DIR", help="A recording, or a folder of them.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The HTML file to write.")] = Path("report.html"),
    limit: Annotated[int, typer.Option(min=1, metavar="MIB", help="About how large the file may become.")] = 40,
    as_json: AsJson = False,
) -> None:
    """Show recorded episodes in one self-contained HTML file: the run's overview, and of each episode its turns.

    Of a large folder, infra failures and failures get their turns into the file first; what has no room is a row of the
    table.
    """
    from codeenv.html.text import size
    from codeenv.report import write_report
    from codeenv.sandbox.api import MiB

    with clear_errors():
        written = write_report(source, output, limit=limit * MiB)
    if as_json:
        print_json(
            {
                "path": str(written.path),
                "episodes": written.episodes,
                "timelines": written.timelines,
                "bytes": written.size,
                "unreadable": written.unreadable,
            }
        )
        return
    out = console()
    for error in list(written.unreadable.values())[:SHOWN]:
        out.print(f"left out: {error}", markup=False)
    if (more := len(written.unreadable) - SHOWN) > 0:
        out.print(f"left out: {more} files more that could not be read")
    turns = "" if written.timelines == written.episodes else f", {written.timelines} of them with their turns"
    count = f"{written.episodes} episode{'s' * (written.episodes != 1)}"
    out.print(f"{written.path}: {count}{turns}, {size(written.size)}", markup=False, soft_wrap=True)
