"""Run a scripted policy over all of `starter` through the real vf-eval; every reward must be the one expected."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

policy, expected = sys.argv[1], float(sys.argv[2])
with tempfile.TemporaryDirectory() as folder:
    command = ["codeenv", "policy", policy, "--dataset", "starter"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        url = next(word for line in server.stdout for word in line.split() if word.startswith("http://"))
        arguments = [
            "vf-eval",
            "codeenv",
            "-m",
            policy,
            "-b",
            url,
            "-k",
            "CODEENV_KEY",
            "-n",
            "-1",
            "-r",
            "1",
            "-c",
            "8",
        ]
        arguments += ["-s", "-d", "-A", "-o", folder, "-C", "outcome,task_id"]
        done = subprocess.run(arguments, env={**os.environ, "CODEENV_KEY": "none"}, capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stdout[-3000:] + done.stderr[-3000:])
    finally:
        server.terminate()
        server.wait()
    rows = [json.loads(line) for path in Path(folder).rglob("results.jsonl") for line in path.read_text().splitlines()]
wrong = {
    row["task_id"]: (row["reward"], row["outcome"], row.get("error"))
    for row in rows
    if row["reward"] != expected or row.get("error")
}
print(f"{policy}: {len(rows)} rollouts, {len(rows) - len(wrong)} with reward {expected}")
if wrong or len(rows) < 30:
    sys.exit(f"not as expected: {wrong}")
