"""Run a scripted policy over all of a dataset through the real vf-eval; every reward must be the one expected.

`rewards.py POLICY REWARD [SANDBOX [DATASET COUNT [TURNS]]]`; "beam" is a gateway for tests, in a process of its own;
COUNT is how many tasks the dataset must have at least. With RECORD in the environment, episodes are recorded there.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

policy, expected = sys.argv[1], float(sys.argv[2])
sandbox, dataset, count, turns = [*sys.argv[3:], *("auto", "starter", "30", "30")[len(sys.argv[3:]) :]]
record = {"record": os.environ["RECORD"]} if os.environ.get("RECORD") else {}
environment = {**os.environ, "CODEENV_KEY": "none"}
gateway = None
if sandbox == "beam":
    command = [sys.executable, "-m", "tests.beam_gateway"]
    gateway = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert gateway.stdout is not None
    account = json.loads(gateway.stdout.readline())
    environment |= {"BEAM_TOKEN": account["token"], "GATEWAY_HOST": account["host"]}
    environment |= {"GATEWAY_PORT": str(account["port"]), "CONFIG_PATH": "/nonexistent"}
started = time.monotonic()
with tempfile.TemporaryDirectory() as folder:
    command = ["codeenv", "policy", policy, "--dataset", dataset]
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
            "3" if sandbox == "beam" else "8",  # elsewhere, its gradings would not wait for each other
            "-a",
            json.dumps({"sandbox": sandbox, "dataset": dataset, "max_turns": int(turns), **record}),
        ]
        arguments += ["-s", "-d", "-A", "-o", folder, "-C", "outcome,task_id,verdict"]
        done = subprocess.run(arguments, env=environment, capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stdout[-3000:] + done.stderr[-3000:])
    finally:
        server.terminate()
        server.wait()
        if gateway is not None and gateway.stdin is not None:
            gateway.stdin.close()
            gateway.wait()
    rows = [json.loads(line) for path in Path(folder).rglob("results.jsonl") for line in path.read_text().splitlines()]
wrong = {
    row["task_id"]: (
        *(row["reward"], row["outcome"], row.get("error")),
        [test["id"] for test in (row.get("verdict") or {}).get("tests", []) if not test["passed"]],
    )
    for row in rows
    if row["reward"] != expected or row.get("error")
}
seconds = time.monotonic() - started
good = f"{len(rows) - len(wrong)} with reward {expected}"
print(f"{policy}, {sandbox}, {dataset}: {len(rows)} rollouts, {good}, {seconds:.0f} s")
if wrong or len(rows) < int(count):
    sys.exit(f"not as expected: {wrong}")
