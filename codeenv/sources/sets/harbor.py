"""Harbor task directories (`harbor:DIR`), those whose environment every box can provide; the rest are bad rows with the
reason. The format is that of harbor 0.26 (`task.toml` of schema 1.4 and before).

The workspace is the image's working directory, at its own path; nothing else of the image, and nothing that a policy
does elsewhere, is judged. The verifier runs without a network in a fresh box. A task is solved by a reward of at least
1, and less counts for nothing. What a verifier of its own runs of the workspace has its rights and could write a reward
as well (`docs/trust.md`, `command`). Cpus and storage are not taken over, nor times for the agent.
"""

from __future__ import annotations

import posixpath
import re
import shlex
import tomllib
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

from codeenv.graders import CommandGrader, Grader, PytestGrader
from codeenv.sandbox.archive import Archive
from codeenv.sources.harbor import verify
from codeenv.sources.harbor.dockerfile import Image, Unprovided, read_dockerfile
from codeenv.sources.rows import PublicSet, Row, RowFault, identifier
from codeenv.task import Limits, Task

TIMEOUT = 600.0  # seconds, Harbor's own where a task says nothing
CANARY = re.compile(r"(?:(?:<!--.*canary.*-->|#.*canary.*)\n\s*)+", re.IGNORECASE)
NETWORK = re.compile(
    r"^[ \t]*(?:if[ \t]+)?(?:sudo[ \t]+)?(curl|wget|apt-get|apt|pip3?|uvx?|npm|npx|git[ \t]+clone)\b", re.MULTILINE
)
COMMAND = ("/usr/bin/env", "python3", "-I", "-B", verify.OWN)
SETUP = re.compile(r"(?:apt-get|apt|curl|wget|source|\.|export|cd|set|mkdir|uv (?:init|venv|add))\b.*|echo .*|exit .*")
"""Lines of a verifier that only make ready, and those that write the reward."""
RUNS_PYTEST = re.compile(
    r"(?:if )?(?:uvx|uv run|python3? -m|)\s*(?P<options>[^;&|<>]*?)\bpytest\s(?P<arguments>[^;&|<>]*)"
    r"(?:;\s*then| \|\| \w+=\$\?)?"
)
UNKNOWN = ("gpus", "gpu_types", "tpu", "mcp_servers", "env", "healthcheck", "skills_dir")


def folders(path: Path) -> Iterable[Row]:
    """A task, or a directory of tasks. :raises FileNotFoundError: there is none."""
    found = [path] if (path / "task.toml").is_file() else sorted(p.parent for p in path.glob("*/task.toml"))
    if not found:
        raise FileNotFoundError(f"{path}: neither a Harbor task (task.toml) nor a directory of tasks")
    return [{"name": folder.name, "folder": folder} for folder in found]


def to_task(row: Row) -> Task:
    folder: Path = row["folder"]
    config = _config(folder)
    environment, verifier = _table(config, "environment"), _table(config, "verifier")
    _check(folder, config, environment, verifier)
    try:
        image = read_dockerfile(folder / "environment")
    except Unprovided as error:
        raise RowFault(f"environment/Dockerfile: {error}") from error
    except (OSError, ValueError) as error:
        raise RowFault(f"environment/Dockerfile: cannot be read: {type(error).__name__}") from error
    workdir = str(environment.get("workdir") or image.workdir)
    if workdir == "/" or any(not place.startswith(f"{workdir}/") for place in image.files):
        raise RowFault("environment/Dockerfile: files outside its working directory, or no WORKDIR")
    tests = Archive.from_directory(folder / "tests") if (folder / "tests").is_dir() else Archive()
    grader, needed, hidden = _grader(tests.files, float(verifier.get("timeout_sec") or TIMEOUT))
    within = {place: place[len(workdir) + 1 :] for place in image.files}
    ready = {entry.path for entry in tests if entry.mode & 0o100} | {within[place] for place in image.executable}
    memory = environment.get("memory_mb")
    about = _table(config, "metadata")
    return Task(
        id=identifier(f"harbor/{folder.name}"),
        instruction=CANARY.sub("", _text(folder / "instruction.md"), count=1),
        files={within[place]: data for place, data in image.files.items()},
        tests=hidden,
        executable=frozenset(ready),
        solution=_solution(folder / "solution", image, workdir),
        grader=grader,
        limits=Limits(memory_mb=int(memory)) if memory else Limits(),
        python=image.python,
        workdir=workdir,
        packages=tuple(dict.fromkeys([*image.packages, *needed])),
        metadata={
            "source": "harbor",
            "tags": [*about.get("tags", ()), *_table(config, "task").get("keywords", ())],
            **{key: about[key] for key in ("difficulty", "category") if key in about},
        },
    )


def _check(
    folder: Path, config: Mapping[str, Any], environment: Mapping[str, Any], verifier: Mapping[str, Any]
) -> None:
    """:raises RowFault: the task asks for what no box has."""
    if config.get("steps"):
        raise RowFault("task.toml: steps: tasks of several steps are not played")
    if asked := [key for key in UNKNOWN if environment.get(key)]:
        raise RowFault(f"task.toml: environment.{asked[0]}: boxes have none")
    if environment.get("os", "linux") != "linux":
        raise RowFault("task.toml: environment.os: boxes are Linux")
    if verifier.get("env") or verifier.get("environment_mode") == "separate" or verifier.get("environment"):
        raise RowFault("task.toml: verifier: an environment of its own, or variables, cannot be had")
    if any((folder / "environment" / name).exists() for name in ("docker-compose.yaml", "docker-compose.yml")):
        raise RowFault("environment/docker-compose.yaml: boxes are single")
    if not (folder / "environment" / "Dockerfile").is_file():
        raise RowFault("environment/Dockerfile: missing; images without one are not looked into")


def _grader(tests: Mapping[str, bytes], timeout: float) -> tuple[Grader, list[str], dict[str, bytes]]:
    """What judges, the packages that it needs and the hidden files: pytest where the verifier does nothing but run it,
    else the verifier itself."""
    if "test.sh" not in tests:
        raise RowFault("tests/test.sh: missing")
    script = tests["test.sh"].decode("utf-8", "replace")
    others = {path: data for path, data in tests.items() if path != "test.sh"}
    packages = _only_runs_pytest(script, others)
    if packages is not None:
        return PytestGrader(timeout=timeout), packages, others
    if network := NETWORK.search(re.sub(r"\\\n", " ", script)):
        raise RowFault(f"tests/test.sh: {network[1]}: the verifier has no network")
    hidden = {**tests, verify.OWN: Path(verify.__file__).read_bytes()}
    return CommandGrader(command=COMMAND, receipt=True, timeout=timeout), [], hidden


def _only_runs_pytest(script: str, others: Mapping[str, bytes]) -> list[str] | None:
    """The packages that its pytest needs; None when it does anything else."""
    if any(re.search(rb"(?<![\w./-])/(?:tests|logs)\b", data) for data in others.values()):
        return None
    runs: list[re.Match[str]] = []
    for line in re.sub(r"\\\n", " ", script).split("\n"):
        line = " ".join(line.split())
        if run := RUNS_PYTEST.fullmatch(line):
            runs.append(run)
        elif line and not line.startswith("#") and not SETUP.fullmatch(line) and not _is_branch(line):
            return None
    if len(runs) != 1:
        return None
    asked = re.sub(
        r"--ctrf[= ]\S+|(?:^| )(?:-rA|-r\w|-vv?|-q|-s|--tb=\w+|--color=\w+)(?= |$)", " ", runs[0]["arguments"]
    )
    collected = {f"/tests/{path}" for path in others if re.search(r"(^|/)(test_[^/]*|[^/]*_test)\.py$", path)}
    if set(asked.split()) not in (collected, {"/tests"}, {"/tests/"}) or not collected:
        return None
    words = shlex.split(runs[0]["options"])
    wanted = [word for flag, word in pairwise(words) if flag in ("-w", "--with")]
    return [word for word in wanted if not word.startswith(("pytest-json-ctrf", "pytest="))]


def _is_branch(line: str) -> bool:
    """Of what makes a reward of pytest's exit code."""
    return bool(
        re.fullmatch(
            r"else|fi|then|(?:el)?if \[\[? .* \]\]?; then(?: echo [^;&|]*)?|else echo [^;&|]*"
            r"|\w+=(?:\$\?|[\d.]+|\$\{\w+:-0\})|\[ [^;|&]* \] && \w+=[\d.]+",
            line,
        )
    )


def _solution(folder: Path, image: Image, workdir: str) -> dict[str, bytes] | None:
    """The files that `solve.sh` writes, where it does nothing but write some with `cat` or copy its own; else None, as
    a script is run by nobody here."""
    script = folder / "solve.sh"
    if not script.is_file():
        return None
    files: dict[str, bytes] = {}
    lines = iter(_text(script).replace("\r\n", "\n").split("\n"))
    for line in lines:
        written = re.fullmatch(r"cat\s*(?:>\s*(?P<a>\S+)\s*)?<<\s*'(?P<end>\w+)'\s*(?:>\s*(?P<b>\S+))?", line.strip())
        copied = re.fullmatch(r"cp /solution/(\S+) (\S+)", line.strip())
        if written:
            body: list[str] = []
            for text in lines:
                if text == written["end"]:
                    break
                body.append(f"{text}\n")
            target, data = written["a"] or written["b"] or "", "".join(body).encode()
        elif copied and (folder / copied[1]).is_file():
            target, data = copied[2], (folder / copied[1]).read_bytes()
        elif re.fullmatch(rf"\s*(?:#.*|set -\S+(?: pipefail)?|mkdir -p \S+|cd {re.escape(workdir)}/?)?\s*", line):
            continue
        else:
            return None
        place = posixpath.normpath(posixpath.join(workdir, target.strip("\"'")))
        if not target or not place.startswith(f"{workdir}/"):
            return None
        files[place[len(workdir) + 1 :]] = data
    return files or None


def _config(folder: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(_text(folder / "task.toml"))
    except tomllib.TOMLDecodeError as error:
        raise RowFault("task.toml: not valid TOML") from error


def _table(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = config.get(name, {})
    if not isinstance(found, dict):
        raise RowFault(f"task.toml: {name}: must be a table")
    return cast(Mapping[str, Any], found)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RowFault(f"{path.name}: cannot be read: {type(error).__name__}") from error


SETS = (
    PublicSet(
        name="harbor",
        title="Harbor task directories",
        licence="the tasks' own",
        to_task=to_task,
        read=folders,
    ),
)
