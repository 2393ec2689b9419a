"""Rows from a hub: a server on loopback that speaks its API, `datasets` itself, and a cache of our own. In processes of
their own, as the hub's address, its cache and whether one is offline are read when `datasets` is imported."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets
import pytest
from hub_server import HubServer, commit_of, serve_hub

from codeenv.sources import load_tasks
from codeenv.sources.hub import HubError

ROWS = [
    {
        "q": f"Return the number {n}, nothing else.",
        "t": [f"assert f() == {n}"],
        "e": "f",
        "o": {"k": n} if n else {},
    }
    for n in range(4)
]
LINES = "".join(json.dumps(row) + "\n" for row in ROWS).encode()
FEW = b"\n".join(LINES.splitlines()[:2]) + b"\n"
CARD = b"""---
configs:
- config_name: one
  data_files:
  - {split: train, path: data/train-*.jsonl}
  - {split: test, path: data/test-*.jsonl}
---
"""
HUMANEVAL = {
    "task_id": "HumanEval/0",
    "prompt": "def one():\n    '''One.'''\n",
    "entry_point": "one",
    "canonical_solution": "    return 1\n",
    "test": "def check(candidate):\n    assert candidate() == 1\n",
}

PROGRAM = """
import json, logging, sys, time
import datasets  # which takes its time
logging.basicConfig(format="%(message)s")
from huggingface_hub import constants
import codeenv.sources.hub as hub
from codeenv.sources import open_tasks
from codeenv.sources.rows import Hub
hub.PATIENCE = 1.0
mapping = {"columns": {"instruction": "q", "tests": "t", "entry_point": "e"}, "kind": "asserts"}
for line in sys.stdin:
    asked = json.loads(line)
    constants.ENDPOINT = asked.pop("endpoint", constants.ENDPOINT)
    started = time.monotonic()
    try:
        if "files" in asked:
            rows = hub.read_hub(Hub(asked["repo"], asked["revision"], files=tuple(asked["files"])), asked["split"], "x")
            answer = [rows.read(place)[0] for place in range(len(rows))]
        else:
            own = mapping if asked["dataset"].startswith("hf:") else {}
            answer = [task.instruction for task in open_tasks(asked, **own)]
    except Exception as error:
        answer = [type(error).__name__, str(error), time.monotonic() - started]
    print(json.dumps(answer), flush=True)
"""


class Asking:
    """A process that loads what it is asked for, with a cache at `home`; as at a new start of ours each time, but for
    the second that `datasets` takes to be imported."""

    def __init__(self, home: Path, endpoint: str) -> None:
        env = {key: value for key, value in os.environ.items() if not key.lower().endswith(("_proxy", "_offline"))}
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            text=True,
            env={**env, "HF_HOME": str(home), "HF_ENDPOINT": endpoint},
        )

    def __call__(self, **asked: Any) -> list[Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def ended(self) -> str:
        """What it logged."""
        return self._process.communicate(timeout=30)[1]

    def __enter__(self) -> Asking:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture
def hub() -> Iterator[HubServer]:
    with_card = {"README.md": CARD, "data/train-0.jsonl": LINES, "data/test-0.jsonl": FEW}
    with_script = {"set.py": b"raise SystemExit", "a/test-1.jsonl": FEW, "a/test-2.jsonl": LINES, "a/x.jsonl": LINES}
    humaneval = {"test.jsonl": json.dumps(HUMANEVAL).encode() + b"\n"}
    with serve_hub({"some/set": with_card, "script/set": with_script, "openai/openai_humaneval": humaneval}) as server:
        yield server


TRAIN, TEST = ({"dataset": "hf:some/set:one", "split": split} for split in ("", "eval"))
FILES = {"repo": "script/set", "split": "test", "files": ["a/{split}-*.jsonl"], "revision": ""}
NOWHERE = "http://127.0.0.1:1"
IS_NOT_CACHED = "is not in the cache ("


def test_loaded_once_and_then_without_a_request(hub: HubServer, tmp_path: Path) -> None:
    some = hub.repositories["some/set"]
    commit, newer = commit_of(some), {**some, "data/train-0.jsonl": FEW}
    wanted = [TRAIN, {"dataset": "humaneval@main"}, FILES]
    with Asking(tmp_path, hub.url) as ask:
        train, humaneval, files = first = [ask(**each) for each in wanted]
        assert train == [row["q"] for row in ROWS]
        assert len(humaneval) == 1, "the package's rows are of no revision"
        assert files == ROWS[:2] + ROWS, "as they are written: Arrow would pad objects"
        hub.repositories["some/set"] = newer
        asked = len(hub.requests)
        assert [ask(**each) for each in wanted] == first, "what it was at the first load"
        assert hub.requests[asked:] == []
        kind, message, _ = ask(**TEST)
        assert (kind, f"(commit {commit})" in message) == ("HubError", True), "of the same commit, which is gone"
        named = {"dataset": f"hf:some/set:one@{commit_of(newer)}"}
        assert ask(**named) == [row["q"] for row in ROWS[:2]]
        for case, (wrong, kind, says) in NOT_THERE.items():
            found, message, _ = ask(**wrong)
            assert (found, says in message) == (kind, True), (case, message)
        said = ask.ended().splitlines()
    assert f"hf:some/set:one is some/set at commit {commit} from now on; to say so: hf:some/set:one@{commit}" in said
    assert len([line for line in said if "from now on" in line]) == 3, "each once, and none that was named"
    with Asking(tmp_path, NOWHERE) as ask:
        assert [ask(**each) for each in wanted] == first


NOT_THERE: dict[str, tuple[dict[str, Any], str, str]] = {
    "repository": ({"dataset": "hf:no/such"}, "HubError", f"hf:no/such: no/such (revision main) {IS_NOT_CACHED}"),
    "revision": ({"dataset": "hf:some/set:one@v9"}, "HubError", f"(revision v9) {IS_NOT_CACHED}"),
    "split": ({"dataset": "hf:script/set", "split": "dev"}, "HubError", "Dataset scripts are no longer supported"),
    "configuration": ({"dataset": "hf:openai/openai_humaneval:two"}, "ValueError", "'two' not found. Available: ["),
    "another split": ({"dataset": "humaneval@main", "split": "dev"}, "ValueError", 'split "dev". Should'),
    "file": ({**FILES, "split": "dev"}, "HubError", "no file a/dev-*.jsonl; there are a/test-1.jsonl, a/test-2.jsonl"),
}


def test_no_network_and_no_cache_is_said_at_once(tmp_path: Path) -> None:
    wanted = {"openai/openai_humaneval": "humaneval@main", "some/set": "hf:some/set"}
    with socket.create_server(("127.0.0.1", 0)) as silent, Asking(tmp_path, NOWHERE) as ask:
        never = f"http://127.0.0.1:{silent.getsockname()[1]}"  # takes connections, and answers none
        for endpoint in (NOWHERE, never):
            for repo, name in wanted.items():
                kind, message, seconds = ask(dataset=name, endpoint=endpoint)
                assert kind == "HubError"
                assert f"{name.partition('@')[0]}: {repo} (revision main) is not in the cache ({tmp_path})" in message
                assert f"could not be loaded from {endpoint}" in message
                assert "take HF_HOME along; or give its rows as a JSONL file (dataset=" in message
                assert seconds < 15, "half a minute is what trying again would take"


def test_offline_and_no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path)
    with pytest.raises(HubError, match="and HF_HUB_OFFLINE forbids to load it"):
        load_tasks("humaneval@main")
