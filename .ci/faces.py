"""The same tasks, the same scripted policies, through every face and every verifiers that has it: one table, whose
columns must all say the same. Then 0.4's own commands, and our tests of v1 under it.

`faces.py [FOLDER]`: where the environments are made, of a wheel of this checkout; a temporary one by default.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from codeenv import Episode, get_provider, load_tasks
from codeenv.cli.vf_eval_v1 import rollout
from codeenv.policies import serve_in_thread
from codeenv.policies.plans import messages

ROOT = Path(__file__).parent.parent
TASKS = ["tip-jar-payout", "ferry-till-reconcile", "open-closed-spans", "drawer-config", "raft-pond"]
POLICIES = ("oracle", "wrong", "noop")
HERE = Path(sys.executable).parent
UV = shutil.which("uv") or str(HERE / "uv")
ENVIRONMENT = {**os.environ, "CODEENV_KEY": "none", "HF_HUB_OFFLINE": "1"}

Said = tuple[float | None, str, int | None, int | None]
Column = dict[tuple[str, str], Said]


def run(*command: str | Path, cwd: Path | None = None, **more: str) -> str:
    done = subprocess.run(command, env={**ENVIRONMENT, **more}, capture_output=True, text=True, cwd=cwd)
    if done.returncode:
        sys.exit(
            f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
        )
    return done.stdout


def environment(folder: Path, wheel: Path, version: str) -> Path:
    """Its `bin`."""
    made = folder / version
    run(UV, "venv", "--quiet", "--clear", "--python", sys.executable, made)
    run(UV, "pip", "install", "--quiet", "--python", made / "bin/python", wheel, f"verifiers=={version}")
    return made / "bin"


async def plain() -> Column:
    """No framework."""
    found: Column = {}
    for policy in POLICIES:
        for task in load_tasks("starter", tasks=TASKS):
            async with Episode.start(task, get_provider()) as episode:
                for message in messages(policy, task):
                    await episode.turn(message.calls)
                verdict = await episode.finish()
            found[policy, task.id] = (verdict.reward, verdict.outcome, verdict.tests_passed, verdict.tests_total)
    return found


def evaluated(where: Path) -> Column:
    """By `codeenv eval`, which runs the `vf-eval` that is there."""
    policies = [word for policy in POLICIES for word in ("-p", policy)]
    shown = run(where / "codeenv", "eval", "starter", *policies, "-a", json.dumps({"tasks": TASKS}), "--json")
    return {
        (found["policy"], each["task"]): (each["reward"], each["outcome"], each["tests_passed"], each["tests_total"])
        for found in json.loads(shown)["policies"]
        for each in found["episodes"]
    }


def served(where: Path, folder: Path) -> Column:
    """By 0.3.1's `eval`; for the first policy with its environment servers, which take seconds to start."""
    found: Column = {}
    with serve_in_thread("oracle", load_tasks("starter", tasks=TASKS)) as server:
        for policy in POLICIES:
            out = folder / f"eval-{policy}"
            client = ["--client.base-url", server.base_url, "--client.api-key-var", "CODEENV_KEY"]
            options = ["--no-push", "--no-rich", "-o", str(out), "--env.taskset.tasks", json.dumps(TASKS)]
            options += ["--no-serve"] if policy != POLICIES[0] else []
            run(where / "eval", "codeenv", "-m", policy, *client, *options)
            (saved,) = out.glob("*/traces.jsonl")
            for each in map(rollout, map(json.loads, saved.read_text().splitlines())):
                found[policy, each["task"]] = (each["reward"], each["outcome"], each["passed"], each["total"])
    return found


def commands(where: Path, folder: Path) -> None:
    """0.4's `vf-validate`; `vf-replay` of what its `vf-eval` saved, with the same rewards; and our configuration."""
    taskset = ["--taskset.tasks", json.dumps(TASKS)]
    options = ["--runtime.type", "subprocess", "--no-rich", "-o", str(folder / "valid")]
    run(where / "vf-validate", "codeenv", *options, *taskset)
    (summary,) = (folder / "valid").glob("*/summary.json")
    valid = json.loads(summary.read_text())["outcomes"]["valid"]
    run(where / "codeenv", "eval", "starter", "-p", "wrong", "-a", json.dumps({"tasks": TASKS}), "-o", folder / "saved")
    (traces,) = (folder / "saved").glob("*/traces.jsonl")
    run(where / "vf-replay", traces.parent, "--no-rich", "--output-dir", folder / "again")
    rewards = [
        [[trace["rewards"] for trace in json.loads(line)["traces"]] for line in path.read_text().splitlines()]
        for path in (traces, folder / "again/traces.jsonl")
    ]
    same = sorted(map(json.dumps, rewards[0])) == sorted(map(json.dumps, rewards[1]))
    run(where / "vf-eval", "@", ROOT / "configs/starter-v1.toml", "--dry-run", "--output-dir", folder / "dry")
    print(f"vf-validate: {valid} of {len(TASKS)} valid; vf-replay: {'the same rewards' if same else rewards}")
    if valid != len(TASKS) or not same:
        sys.exit("not as expected")


def main(folder: Path) -> None:
    started = time.monotonic()
    run(UV, "build", "--quiet", "--wheel", "--out-dir", folder / "dist", cwd=ROOT)
    (wheel,) = (folder / "dist").glob("*.whl")
    old, new = (environment(folder, wheel, version) for version in ("0.3.0", "0.4.0"))
    columns = {
        "asyncio": asyncio.run(plain()),
        "0.3.0, v0": evaluated(old),
        "0.3.1, v0": evaluated(HERE),
        "0.3.1, v1": served(HERE, folder),
        "0.4.0, v1": evaluated(new),
    }
    table = Table("policy", "task", *columns)
    different = 0
    for policy in POLICIES:
        for task in TASKS:
            cells = [column.get((policy, task)) for column in columns.values()]
            same = cells[0] is not None and len(set(cells)) == 1
            different += not same
            shown = ["-" if cell is None else f"{cell[0]} {cell[1]} {cell[2]}/{cell[3]}" for cell in cells]
            table.add_row(policy, task, *shown, style="" if same else "red")
    Console(width=160).print(table)
    rewards = {
        policy: {column[policy, task][0] for column in columns.values() for task in TASKS} for policy in POLICIES
    }
    if different or rewards != {"oracle": {1.0}, "wrong": {0.0}, "noop": {0.0}}:
        sys.exit(f"{different} rows differ; rewards {rewards}")
    commands(new, folder)
    print(run(new / "python", "-m", "pytest", "-q", "tests/v1", cwd=ROOT).splitlines()[-1])
    print(f"{time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        main(Path(sys.argv[1] if sys.argv[1:] else temporary).resolve())
