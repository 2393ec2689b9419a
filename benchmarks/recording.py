"""What a recording costs: the oracle's episodes in plain asyncio, one at a time, recorded and not, in turns; and a turn
alone, of a short command and of a file that is written.

The rival is the same episode without a recording; the floor is the same bytes appended to a file.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import tracemalloc
from pathlib import Path
from time import perf_counter

import anyio
from measure import alternate, options, report

from codeenv.episode import Episode, counter
from codeenv.policies.plans import messages
from codeenv.record import Recordings, summaries
from codeenv.record.folder import append
from codeenv.sandbox import get_provider
from codeenv.sources import load_tasks
from codeenv.task import Task
from codeenv.tools import ToolCall

TURNS = 50
SMALL = 40  # tasks of HumanEval, whose episodes are as short as episodes get


async def main() -> None:
    wanted = options(__doc__ or "")
    rounds = wanted.rounds or 5
    provider = get_provider()
    sets = {"starter": load_tasks("starter"), "humaneval": load_tasks("humaneval")[:SMALL]}
    task = sets["starter"][0]
    _ = counter().exact
    with tempfile.TemporaryDirectory() as kept:
        folder = Recordings(kept)

        async def episode(task: Task, record: Recordings | None) -> float:
            started = perf_counter()
            async with Episode.start(task, provider, record=record) as played:
                for message in messages("oracle", task):
                    await played.turn(message.calls)
                assert (await played.finish()).solved
            return perf_counter() - started

        rows: list[dict[str, object]] = []
        for name, tasks in sets.items():
            times: dict[str, list[float]] = {"recorded": [], "not recorded": []}
            for number in range(rounds + 1):
                for task in tasks:
                    for rival in sorted(times, reverse=number % 2 == 0):
                        took = await episode(task, folder if rival == "recorded" else None)
                        if number:
                            times[rival].append(took)
            means = {rival: 1000 * statistics.fmean(values) for rival, values in times.items()}
            pairs = [a / b for a, b in zip(times["recorded"], times["not recorded"], strict=True)]
            rows.append(
                {
                    "work": f"an oracle's episode of {name}, mean of {len(tasks)} tasks",
                    "recorded ms": means["recorded"],
                    "not recorded ms": means["not recorded"],
                    "ratio": means["recorded"] / means["not recorded"],
                    "median of pairs": statistics.median(pairs),
                    "bytes appended ms": "",
                }
            )
        files = [Path(kept, row.file) for row in summaries(kept) if row.task in {task.id for task in sets["starter"]}]
        lines = [json.loads(line) for path in files for line in path.read_text().splitlines()]

        async def append_them() -> None:
            for line in lines:
                append(Path(kept) / "floor", line)

        floor = await alternate({"floor": append_them}, rounds=rounds)
        rows[0]["bytes appended ms"] = floor["floor"] / len(files)
        size = sum(path.stat().st_size for path in files) / len(files)
        calls = {
            "a turn: `true`": ToolCall("bash", {"command": "true"}),
            "a turn: a file written": ToolCall("write_file", {"path": "new.py", "content": "x = 1\n" * 200}),
        }
        for name, call in calls.items():
            async with (
                Episode.start(task, provider, record=folder, max_turns=0) as with_it,
                Episode.start(task, provider, max_turns=0) as without,
            ):

                async def play(episode: Episode, call: ToolCall = call) -> None:
                    for _ in range(TURNS):
                        await episode.turn([call])

                found = await alternate(
                    {"recorded": lambda: play(with_it), "not": lambda: play(without)},
                    rounds=rounds,
                )
            rows.append(
                {
                    "work": name,
                    "recorded ms": found["recorded"] / TURNS,
                    "not recorded ms": found["not"] / TURNS,
                    "ratio": found["recorded"] / found["not"],
                    "median of pairs": "",
                    "bytes appended ms": "",
                }
            )
        peak = await memory(task, folder)
    notes = [
        f"{rounds} rounds, which take turns; {size / 1000:.0f} kB a recording of starter",
        "bound: an episode recorded takes at most 1.03 times one that is not",
        f"memory: at most {peak / 1e6:.1f} MB more in Python while a command prints 50 MB and writes a file of 50 MB",
    ]
    report("Recording", rows, as_json=wanted.json, notes=notes)


async def memory(task: Task, folder: Recordings) -> int:
    """The most that Python holds at once in a recorded turn, less that of one that is not."""
    provider = get_provider()
    command = "head -c 50000000 /dev/zero | tr '\\0' x; head -c 50000000 /dev/zero > big"
    peaks: list[int] = []
    for record in (folder, None):
        async with Episode.start(task, provider, record=record) as episode:
            await episode.turn([ToolCall("bash", {"command": "true"})])
            tracemalloc.start()
            await episode.turn([ToolCall("bash", {"command": command})])
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    return peaks[0] - peaks[1]


anyio.run(main)
