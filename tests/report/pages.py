"""Recordings for reports: many turns, many episodes, hostile text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from codeenv.record.folder import INDEX
from tests.record.recorded import OPENING, START, turn, written

HOSTILE = (
    "</script></style></template></textarea><script>window.broken=1</script>"
    "<img src=http://127.0.0.1:9/x onerror='window.broken=2'><svg onload=window.broken=3>"
    "<a href=javascript:window.broken=4>go</a><iframe srcdoc='<script>parent.broken=5</script>'></iframe>"
    "<meta http-equiv=refresh content='0;url=http://127.0.0.1:9/'><base href=http://127.0.0.1:9/>"
    "<form action=http://127.0.0.1:9/><style>*{display:none}</style><!-- ]]> {{ 7*7 }} {% raw %} "
    "\x1b[31m\x00\u202egpj.exe\ufeff \ud800 &lt;b&gt; \"quoted'"
)


def bash(command: str, text: str, **fields: Any) -> dict[str, Any]:
    plain = {
        "name": "bash",
        "arguments": json.dumps({"command": command}),
        "tool": "bash",
        "text": text,
        "exit_code": 0,
    }
    return {**plain, "seconds": 0.25, "tokens": len(text) // 4, **fields}


def verdict(
    outcome: str, passed: int, total: int, name: str = "test_adding.py::test_one", **fields: Any
) -> dict[str, Any]:
    tests = [{"id": f"{name}[{n}]", "passed": n < passed, "seconds": 0.01} for n in range(total)]
    plain = {"outcome": outcome, "reward": float(passed == total), "exit_code": int(passed < total), "tests": tests}
    return {**plain, "seconds": 1.5, **fields}


def ended(outcome: str, passed: int = 0, total: int = 4, **fields: Any) -> dict[str, Any]:
    plain = {"kind": "end", "seconds": 9.0, "outcome": outcome, "over": "submitted", "tally": {"grade_seconds": 2.0}}
    judged = {} if outcome in ("infra", "model") else {"verdict": verdict(outcome, passed, total)}
    return {**plain, **judged, **fields}


def opening(name: str, **fields: Any) -> dict[str, Any]:
    return {**OPENING, "id": name, "task": {**OPENING["task"], "id": f"task-{name}"}, "policy": "scripted", **fields}


def episode(
    folder: Path,
    name: str,
    outcome: str = "failed",
    *,
    turns: int = 3,
    passed: int = 2,
    lines: int = 30,
    end: Any = None,
    **fields: Any,
) -> Path:
    """One file; each turn says `step N of NAME`, and the second one's call fails."""
    found = [opening(name, **fields), START]
    for number in range(1, turns + 1):
        diff = f"--- a.py\n+++ a.py\n@@ -1,2 +1,2 @@\n same\n-was {number}\n+is {number}\n"
        changed = [{"path": "a.py", "change": "changed", "size": 20, "digest": "d" * 64, "diff": diff}]
        failed = {"failed": True, "exit_code": 1} if number == 2 else {}
        output = "".join(f"line {line} of {number}\n" for line in range(lines))
        said = {"text": f"Now step {number} of {name}.", "reasoning": f"secretly {number}", "completion_tokens": 9}
        found.append(turn(number, said=said, results=[bash(f"python step{number}.py", output, **failed)], diff=changed))
    return written(folder / f"{name}.jsonl", *found, ended(outcome, passed, **(end or {})))


def hostile(folder: Path) -> Path:
    """The hostile text wherever a recording has text."""
    text = HOSTILE
    raw = {"template": "bash.j2", "output": {"text": text}, "output_bytes": 90_000}
    cut = f"{text}\n[... 9 bytes omitted; the full output is in /tmp/x ...]\n{text}"
    result = bash(
        text, cut, name=text, raw=raw, fault=text, failed=True, verdict=verdict("failed", 1, 3, text, reason=text)
    )
    result["arguments"] = json.dumps({"command": text, "path": text, text: text + "\n"})
    changed = {
        "path": text,
        "change": "added",
        "diff": f"--- a\n+++ a\n@@ -1 +1 @@\n-{text}\n+{text}\n",
        "target": text,
        "digest": text,
    }
    said = {"text": text, "reasoning": text}
    judged = verdict("failed", 1, 3, text, reason=text)
    judged["tests"][2]["message"] = text
    lines = [
        opening(text, policy=text, sandbox=text, started=text, versions={text: text}, settings={text: text},
                spec={text: text}, labels={text: text}, fork={"id": text, "turn": 1}),
        {**START, "prompt": [{"role": text, "content": text}]},
        turn(1, said=said, results=[result, bash("ls", "", arguments=text)], diff=[changed], diff_note=text,
             over=text, error=text),
        {"kind": "workspace", "files": [{"path": text, "mode": 420, "data": {"text": text}}], "removed": [text],
         "missing": text},
        ended("failed", over=text, verdict=judged, error={"type": text, "stage": text, "message": text}),
    ]  # fmt: skip
    return written(folder / "<img src=x onerror=window.broken=6>.jsonl", *lines)


def many(folder: Path, count: int) -> None:
    """A folder that lists as `count` episodes."""
    lines: list[str] = []
    for number in range(count):
        outcome = ("solved", "failed", "failed", "infra")[number % 4]
        name = f"many{number:05}"
        (folder / f"{name}.jsonl").touch()
        row = {
            "file": f"{name}.jsonl",
            "id": name,
            "task": f"task-{number % 50}",
            "outcome": outcome,
            "turns": number % 30,
        }
        row |= {
            "seconds": number / 10,
            "model_seconds": number / 20,
            "tests_passed": number % 5,
            "tests_total": 4,
            "ended": True,
        }
        lines.append(
            json.dumps(row | ({"reward": float(outcome == "solved")} if outcome != "infra" else {"error": "box: gone"}))
        )
    (folder / INDEX).write_text("\n".join(lines) + "\n")
