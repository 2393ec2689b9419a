"""Runs a Harbor verifier (`tests/test.sh`) in a box, where nothing can be written at the root: `/tests` and
`/logs/verifier` are directories below the temporary one, and so are their names in the files of the tests.

Sent to the box as a file beside the tests and run there by the `command` grader. Exit code 0 for a reward of at least
1. The last line printed is the word that was given on standard input.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

OWN = "harbor_verify.py"


def moved(text: bytes, places: dict[str, str]) -> bytes:
    for old, new in places.items():
        text = re.sub(rb"(?<![\w./-])" + old.encode() + rb"(?![\w.-])", new.encode().replace(b"\\", rb"\\"), text)
    return text


def reward(logs: str, reads_json: bool) -> float:
    """As Harbor has it, reward.json counts before reward.txt; but only where the tests name it, or else whoever writes
    one decides."""
    path = os.path.join(logs, "reward.json")
    if reads_json and os.path.exists(path):
        with open(path) as file:
            found: dict[str, float] = json.load(file)
        return float(found["reward"]) if "reward" in found else min(map(float, found.values()))
    with open(os.path.join(logs, "reward.txt")) as file:
        return float(file.read())


def main() -> None:
    word = sys.stdin.readline().strip()
    root = tempfile.mkdtemp()
    tests, logs = os.path.join(root, "tests"), os.path.join(root, "logs", "verifier")
    shutil.copytree(os.getcwd(), tests, ignore=shutil.ignore_patterns(OWN))
    os.makedirs(logs)
    reads_json = False
    for folder, _, names in os.walk(tests):
        for name in names:
            path = os.path.join(folder, name)
            with open(path, "rb") as file:
                text = file.read()
            reads_json = reads_json or b"reward.json" in text
            if b"\0" not in text:
                with open(path, "wb") as file:
                    file.write(moved(text, {"/logs/verifier": logs, "/tests": tests}))
    subprocess.run(["bash", os.path.join(tests, "test.sh")], cwd=os.environ["WORKSPACE"], stdin=subprocess.DEVNULL)
    try:
        got = reward(logs, reads_json)
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        sys.exit(f"no reward: {type(error).__name__}: {error}")
    if not got >= 1:
        sys.exit(f"reward {got}")
    sys.stdout.write(f"\n{word}\n")


if __name__ == "__main__":
    main()
