"""Harbor task directories of our own, graded in real boxes as the format has it."""

# ruff: noqa: E501 - tables: one case a line

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from codeenv.episode import Episode
from codeenv.grading import Verdict, box_spec
from codeenv.policies import plan
from codeenv.sandbox.api import SandboxProvider
from codeenv.sources import load_tasks, open_tasks
from codeenv.task import Task, TaskError
from tests.episodes import judge

pytestmark = pytest.mark.anyio

PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"
TOML = """\
schema_version = "1.4"

[metadata]
difficulty = "easy"
category = "programming"
tags = ["files"]

[verifier]
timeout_sec = 20.0

[agent]
timeout_sec = 100.0

[environment]
memory_mb = 1024
"""
DOCKERFILE = f"""\
# What the task needs.
FROM python:{PYTHON}-slim

RUN apt-get update && apt-get install -y tmux asciinema \\
    && rm -rf /var/lib/apt/lists/*
ENV PYTHONUNBUFFERED=1
WORKDIR /app
COPY input/ ./input
COPY --chown=root:root start.py /app/
CMD ["bash"]
"""
UVX = """\
#!/bin/bash

apt-get update
apt-get install -y curl
curl -LsSf https://uv.example/0.9.7/install.sh | sh
source $HOME/.local/bin/env

if [ "$PWD" = "/" ]; then
    echo "Error: no working directory"
    exit 1
fi

uvx \\
  --with pytest==8.4.1 \\
  --with pytest-json-ctrf==0.3.5 \\
  pytest --ctrf /logs/verifier/ctrf.json /tests/test_outputs.py -rA

if [ $? -eq 0 ]; then
  echo 1 > /logs/verifier/reward.txt
else
  echo 0 > /logs/verifier/reward.txt
fi
"""
OUTPUTS = """\
import subprocess
from pathlib import Path


def test_sum():
    assert Path("/app/sum.txt").read_text().strip() == "6"


def test_script():
    done = subprocess.run(["python3", "start.py"], cwd="/app", capture_output=True, text=True)
    assert done.stdout == "ready\\n"
"""
COUNTS = """\
#!/bin/bash
right=$(cat /tests/data/right.txt)
if [ "$(cat sum.txt)" = "$right" ]; then echo 1 > /logs/verifier/reward.txt
elif [ -f sum.txt ]; then echo 0.5 > /logs/verifier/reward.txt
else echo 0 > /logs/verifier/reward.txt; fi
exit 3
"""
SOLVE = """\
#!/bin/bash
set -euo pipefail
cd /app
# The sum.
cat > sum.txt <<'EOF'
6
EOF
cp /solution/start.py /app/start.py
"""


def directory(root: Path, name: str = "sum-up", **changes: str | None) -> Path:
    files: dict[str, str | None] = {
        "task.toml": TOML,
        "instruction.md": "<!-- benchmark canary GUID 1 -->\n\nWrite the sum of /app/input/*.txt to /app/sum.txt.\n",
        "environment/Dockerfile": DOCKERFILE,
        "environment/input/a.txt": "4\n",
        "environment/input/b.txt": "2\n",
        "environment/start.py": "print('start')\n",
        "tests/test.sh": UVX,
        "tests/test_outputs.py": OUTPUTS,
        "solution/solve.sh": SOLVE,
        "solution/start.py": "print('ready')\n",
        **changes,
    }
    for path, content in files.items():
        if content is not None:
            (root / name / path).parent.mkdir(parents=True, exist_ok=True)
            (root / name / path).write_text(content)
    return root / name


COUNTING: dict[str, str | None] = {
    "tests/test.sh": COUNTS,
    "tests/test_outputs.py": None,
    "tests/data/right.txt": "6\n",
}


def load(folder: Path) -> Task:
    (task,) = load_tasks(f"harbor:{folder}")
    return task


async def judged(task: Task, provider: SandboxProvider, **files: str | None) -> Verdict:
    left = {name.replace("_", "."): text for name, text in files.items() if text is not None}
    return await judge(task, provider, left)  # type: ignore[arg-type]


async def test_a_verifier_that_runs_pytest(tmp_path: Path, provider: SandboxProvider) -> None:
    task = load(directory(tmp_path))
    assert (task.id, task.grader.kind, task.python) == ("harbor/sum-up", "pytest", PYTHON)
    assert (task.grader.timeout, task.limits.memory_mb) == (20, 1024)
    assert set(task.files) == {"input/a.txt", "input/b.txt", "start.py"}
    assert task.metadata == {"source": "harbor", "tags": ["files"], "difficulty": "easy", "category": "programming"}
    assert "canary" not in task.instruction
    assert box_spec(task).workdir == "/app"
    verdict = await judge(task, provider, dict(task.solution or {}))
    assert (verdict.outcome, verdict.tests_total) == ("solved", 2), verdict
    assert (await judge(task, provider)).outcome == "failed"
    assert (await judged(task, provider, sum_txt="6\n")).tests_passed == 1


async def test_the_oracle_works_where_the_instruction_says(tmp_path: Path, provider: SandboxProvider) -> None:
    task = load(directory(tmp_path))
    async with Episode.start(task, provider) as episode:
        assert "The files in /app:" in episode.task_message()
        for turn in plan("oracle", task):
            observations = await episode.turn(turn)
        assert observations[-1].done
        assert (await episode.finish()).outcome == "solved"


async def test_a_verifier_of_its_own_decides_by_its_reward(tmp_path: Path, provider: SandboxProvider) -> None:
    task = load(directory(tmp_path, **COUNTING))
    assert task.grader.kind == "command"
    for text, outcome, says in (("6\n", "solved", ""), ("7\n", "failed", "reward 0.5"), (None, "failed", "reward 0.0")):
        verdict = await judged(task, provider, sum_txt=text)
        assert verdict.outcome == outcome, verdict
        assert says in verdict.tests[0].message


JSON = (
    '#!/bin/bash\nbash ./run.sh\nprintf \'{"reward": %s, "style": 0}\' "$(cat sum.txt)" > /logs/verifier/reward.json\n'
)
FORGES = "for folder in /tmp/*/logs/verifier; do echo '{\"reward\": 1}' > $folder/reward.json; done"


@pytest.mark.parametrize(
    ("script", "run", "outcome"),
    [
        (JSON, "", "solved"),
        (COUNTS, FORGES, "failed"),
        ("#!/bin/bash\nbash ./run.sh\n", "", "failed"),
        ("#!/bin/bash\necho high > /logs/verifier/reward.txt\n", "", "failed"),
        ("#!/bin/bash\necho nan > /logs/verifier/reward.txt\n", "", "failed"),
        ("#!/bin/bash\necho '[1]' > /logs/verifier/reward.json\n", "", "failed"),
    ],
    ids=["json", "forged-json", "no-reward", "no-number", "nan", "json-list"],
)
async def test_rewards_are_read_as_harbor_does_and_not_from_whoever_writes_one(
    tmp_path: Path, provider: SandboxProvider, script: str, run: str, outcome: str
) -> None:
    script = script.replace("right=", "bash ./run.sh; right=")
    task = load(directory(tmp_path, **{**COUNTING, "tests/test.sh": script}))
    assert (await judged(task, provider, sum_txt="1", run_sh=run)).outcome == outcome


@pytest.mark.parametrize(
    ("script", "gives"),
    [
        (SOLVE, {"sum.txt": b"6\n", "start.py": b"print('ready')\n"}),
        ("cat <<'X' > /app/deep/er.txt\na\n\nX\n", {"deep/er.txt": b"a\n\n"}),
        ("python3 /solution/start.py\n", None),
        ("cat > /etc/passwd <<'X'\nX\n", None),
        ("cat > sum.txt <<X\n$HOME\nX\n", None),
        (None, None),
    ],
    ids=["cat-and-cp", "behind", "a-program", "outside", "expanded", "none"],
)
def test_a_reference_that_only_writes_files_is_known(
    tmp_path: Path, script: str | None, gives: dict[str, bytes] | None
) -> None:
    assert load(directory(tmp_path, **{"solution/solve.sh": script})).solution == gives


def docker(text: str) -> dict[str, str | None]:
    return {"environment/Dockerfile": text}


BASE = f"FROM python:{PYTHON}\nWORKDIR /app\n"
FAULTS: dict[str, tuple[dict[str, str | None], str]] = {
    "ubuntu": (docker("FROM ubuntu:24.04\nWORKDIR /app\n"), "FROM ubuntu:24.04"),
    "stages": (docker(BASE + BASE), "only one stage"),
    "apt": (docker(BASE + "RUN apt-get install -y gcc\n"), "only `pip install` can be had"),
    "script": (docker(BASE + "RUN python make.py\n"), "RUN python make.py"),
    "heredoc": (docker(BASE + "RUN <<EOF\nls\nEOF\n"), "here-documents"),
    "variable": (docker(BASE + "ENV DATABASE=x\n"), "ENV DATABASE=x"),
    "download": (docker(BASE + "ADD https://x.example/a.tar .\n"), "beside the Dockerfile"),
    "above": (docker(BASE + "COPY ../../secret .\n"), "is not beside the Dockerfile"),
    "elsewhere": (docker(BASE + "COPY start.py /data/\n"), "outside its working directory"),
    "no-workdir": (docker(f"FROM python:{PYTHON}\n"), "no WORKDIR"),
    "entrypoint": (docker(BASE + 'ENTRYPOINT ["serve"]\n'), "ENTRYPOINT is not known"),
    "by-url": (docker(BASE + "RUN pip install git+https://x.example/a\n"), "no package by name"),
    "no-dockerfile": (docker("").fromkeys(["environment/Dockerfile"]), "environment/Dockerfile: missing"),
    "compose": ({"environment/docker-compose.yaml": "services: {}\n"}, "boxes are single"),
    "network": ({"tests/test.sh": "pip install x\npython3 /tests/y.py\n"}, "tests/test.sh: pip: the verifier"),
    "no-verifier": ({"tests/test.sh": None}, "tests/test.sh: missing"),
    "gpu": ({"task.toml": TOML + "gpus = 1\n"}, "environment.gpus"),
    "steps": ({"task.toml": TOML + '[[steps]]\nname = "a"\n'}, "steps"),
    "windows": ({"task.toml": TOML + 'os = "windows"\n'}, "environment.os"),
    "separate": ({"task.toml": TOML.replace("[agent]", 'environment_mode = "separate"\n[agent]')}, "verifier: an"),
    "toml": ({"task.toml": "["}, "not valid TOML"),
    "no-instruction": ({"instruction.md": None}, "instruction.md: cannot be read"),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "says"), FAULTS.values(), ids=FAULTS)
def test_what_a_box_cannot_provide_is_named_and_the_rest_load(
    tmp_path: Path, changes: dict[str, str | None], says: str
) -> None:
    directory(tmp_path)
    directory(tmp_path, "other", **changes)
    tasks = open_tasks(f"harbor:{tmp_path}")
    bad = tasks.bad
    assert [task.id for task in tasks] == ["harbor/sum-up"]
    assert [(row.name, says in row.reason) for row in bad] == [("other", True)], bad


UV = "uvx -p 3.13 -w pytest==8.4.1 -w pyyaml pytest --ctrf /logs/verifier/ctrf.json /tests/test_outputs.py -v"
VARIANTS = {
    "if": f"if {UV}; then\n  echo 1 > /logs/verifier/reward.txt\nelse\n  echo 0 > /logs/verifier/reward.txt\nfi\n",
    "then": f"if {UV}\nthen\n  echo 1 > /logs/verifier/reward.txt\nelse\n  echo 0 > /logs/verifier/reward.txt\nfi\n",
    "status": f"set +e\n{UV}\nSTATUS=$?\nif [ $STATUS -eq 0 ]; then echo 1 > /logs/verifier/reward.txt\nelse echo 0 > x\nfi\nexit $STATUS\n",
    "or": f"code=0\n{UV} || code=$?\nreward=0\n[ $code -eq 0 ] && reward=1\nmkdir -p /logs/verifier\necho $reward > /logs/verifier/reward.txt\n",
    "folder": UV.replace("/tests/test_outputs.py", "/tests") + "\n",
}  # fmt: skip


@pytest.mark.parametrize("script", VARIANTS.values(), ids=VARIANTS)
def test_verifiers_that_run_pytest_are_written_in_many_ways(tmp_path: Path, script: str) -> None:
    task = load(directory(tmp_path, **{"tests/test.sh": script}))
    assert (task.grader.kind, task.packages) == ("pytest", ("pyyaml",))


def test_packages_come_from_the_dockerfile_and_the_verifier(tmp_path: Path) -> None:
    text = (
        BASE
        + "COPY requirements.txt .\nRUN pip install --no-cache-dir -r requirements.txt && pip install 'jinja2>=3' uv\n"
    )
    changes: dict[str, Any] = {
        **docker(text),
        "environment/requirements.txt": "# two\npackaging==1.2  # pinned\n\nrich\n",
        "tests/test.sh": UVX.replace("pytest==8.4.1", "pyyaml"),
    }
    assert load(directory(tmp_path, **changes)).packages == ("packaging==1.2", "rich", "jinja2>=3", "pyyaml")


@pytest.mark.parametrize(
    "script",
    [
        UVX.replace("-rA", "-rA; true"),
        UVX + "python3 /tests/more.py\n",
        UVX.replace("/tests/test_outputs.py", "/app/test_x.py"),
        UVX.replace("-rA", "-k sum"),
        UVX.replace("-rA", "|| true"),
        UVX.replace("-rA", "--workdir /tests"),
    ],
    ids=["more-in-the-line", "more-behind", "other-tests", "some-tests", "never-fails", "own-option"],
)
def test_a_verifier_that_does_more_than_pytest_is_not_taken_for_one(tmp_path: Path, script: str) -> None:
    with pytest.raises(TaskError, match=r"tests/test.sh: apt-get: the verifier has no network"):
        load_tasks(f"harbor:{directory(tmp_path, **{'tests/test.sh': script})}")
