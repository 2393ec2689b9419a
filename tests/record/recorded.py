"""Recordings of small episodes for tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from codeenv.record import Recording

OPENING: dict[str, Any] = {
    "kind": "episode", "format": 1, "id": "abc", "started": "2026-01-02T03:04:05.000+00:00",
    "task": {"id": "adding", "digest": "d"}, "sandbox": "bubblewrap", "settings": {}, "spec": {}, "versions": {},
}  # fmt: skip
START: dict[str, Any] = {"kind": "start", "seconds": 0.5, "workdir": "/workspace", "prompt": []}
END: dict[str, Any] = {"kind": "end", "seconds": 9.0, "outcome": None, "over": "", "tally": {}}


def turn(number: int, **fields: Any) -> dict[str, Any]:
    plain = {"kind": "turn", "turn": number, "at": number, "waited": 0.25, "seconds": 0.5, "said": {}}
    return {**plain, "results": [], "diff": [], **fields}


def written(path: Path, *lines: Any) -> Path:
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return path


def recording_in(folder: Path) -> Recording:
    """The only one there."""
    (path,) = (path for path in folder.glob("*.jsonl") if path.name != "index.jsonl")
    return Recording.load(path)
