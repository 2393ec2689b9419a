"""HumanEval's verdicts are those of its own harness: a sample here, all of it in benchmarks/agreement.py."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from codeenv.grading import box_spec, grade, workspace_of
from codeenv.sandbox.api import SandboxProvider
from codeenv.sandbox.archive import Archive
from codeenv.sources import load_tasks

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "agreement.py"


def test_a_sample() -> None:
    command = [sys.executable, str(SCRIPT), "--json", "--every", "33", "--mutants", "4"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["notes"] == []  # each a difference
    rows = {row["work"]: row for row in found["rows"]}
    assert rows["reference"] == {"work": "reference", "all": 5, "we pass": 5, "they pass": 5, "differ": 0}
    assert rows["stub"] == {"work": "stub", "all": 5, "we pass": 0, "they pass": 0, "differ": 0}
    assert rows["mutant"]["all"] > 15
    assert rows["mutant"]["we pass"] == rows["mutant"]["they pass"] < rows["mutant"]["all"] / 2


EQUAL = "class E:\n    def __eq__(self, other): return True\n"
DIFFER: dict[str, tuple[str, str, bool, bool]] = {
    "helper-redefined": ("32", "def poly(xs, x): return 0.0\ndef find_zero(xs): return 1.0\n", False, True),
    "equal-to-everything": ("53", EQUAL + "def add(x, y): return E()\n", False, True),
    "slow-to-start": ("53", "import time\ntime.sleep(2.2)\ndef add(x, y): return x + y\n", True, False),
    "reads-input": ("53", "import sys\ndef add(x, y):\n    sys.stdin.read()\n    return x + y\n", True, False),
    "signals": ("53", "import os\ndef add(x, y):\n    os.kill(os.getpid(), 0)\n    return x + y\n", True, False),
    "exits": ("53", "import os\nos._exit(0)\n", False, False),
    "a-subclass-of-int": ("53", "class I(int): pass\ndef add(x, y): return I(x + y)\n", True, True),
    "not-a-def": ("53", "add = lambda x, y: x + y\n", True, True),
    "changes-its-argument": ("33", "def sort_third(l):\n    l[::3] = sorted(l[::3])\n    return l\n", True, True),
}


@pytest.mark.anyio
async def test_where_they_differ(provider: SandboxProvider) -> None:
    """As docs/agreement.md has it: ours, theirs, who are given less time than usual."""
    lines = "".join(json.dumps([f"HumanEval/{number}", f"\n{code}"]) + "\n" for number, code, _, _ in DIFFER.values())
    command = [sys.executable, str(SCRIPT.with_name("official.py")), "2", "2.0"]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=120)
    theirs, _ = json.loads(done.stdout)
    tasks = {task.id: task for task in load_tasks("humaneval")}
    found: dict[str, tuple[bool, bool]] = {}
    for (name, (number, code, _, _)), they in zip(DIFFER.items(), theirs, strict=True):
        task = tasks[f"HumanEval/{number}"]
        left = workspace_of(task).overlay(Archive.of({"solution.py": code.encode()}))
        found[name] = ((await grade(task, left, provider, box_spec(task))).solved, they)
    assert found == {name: case[2:] for name, case in DIFFER.items()}
