"""`codeenv datasets`: the public sets that there are by name."""

from __future__ import annotations

from codeenv.cli.options import AsJson
from codeenv.cli.terminal import console, print_json, table


def datasets(as_json: AsJson = False) -> None:
    """List the task sets that have a name: those that come with codeenv, and public ones with where their rows come
    from."""
    from codeenv.sources import catalogue, shipped

    public = catalogue()
    if as_json:
        print_json({"shipped": shipped(), "public": public})
        return
    out = console()
    out.print(f"shipped: {', '.join(shipped())}", markup=False)
    shown = table("name", "source", "splits", "licence")
    for entry in public:
        shown.add_row(entry["name"], entry["source"], entry["splits"], entry["licence"])
    out.print(shown)
