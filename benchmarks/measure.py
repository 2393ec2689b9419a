"""What the benchmarks share: tables, and rounds that alternate between rivals, so that a drift meets all alike."""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Awaitable, Callable, Mapping
from time import perf_counter

from rich.console import Console
from rich.table import Table

Work = Callable[[], Awaitable[object]]


async def alternate(rivals: Mapping[str, Work], *, rounds: int, warm_up: int = 2) -> dict[str, float]:
    """The median wall milliseconds of each rival's work, over `rounds` rounds in which each does it once."""
    times: dict[str, list[float]] = {name: [] for name in rivals}
    for number in range(rounds + warm_up):
        for name, work in rivals.items():
            started = perf_counter()
            await work()
            if number >= warm_up:
                times[name].append((perf_counter() - started) * 1000)
    return {name: statistics.median(values) for name, values in times.items()}


def options(description: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    parser.add_argument(
        "--rounds", type=int, default=0, help="rounds of each measurement; 0: what gives steady medians"
    )
    return parser.parse_args()


def report(title: str, rows: list[dict[str, object]], *, as_json: bool, notes: list[str]) -> None:
    if as_json:
        print(json.dumps({"title": title, "rows": rows, "notes": notes}))
        return
    table = Table(title=title)
    for name in rows[0]:
        table.add_column(name, justify="left" if name in ("work", "rival") else "right")
    for row in rows:
        table.add_row(*(f"{value:.2f}" if isinstance(value, float) else str(value) for value in row.values()))
    console = Console(width=110)
    console.print(table)
    for note in notes:
        console.print(f"- {note}", markup=False, highlight=False)
