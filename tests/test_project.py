"""The shape of the project: what must not shadow what, which floor may import which, what a wheel must hold."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import datasets
import pytest

ROOT = Path(__file__).parent.parent

FLOORS: dict[str, int] = {
    "html": 0, "sandbox": 0, "task": 0, "graders": 0, "resources": 0, "syntax": 0,
    "observation": 1, "terminal": 1, "tokens": 1, "sources": 1,
    "grading": 2, "prompts": 2,
    "answer": 3,
    "settings": 3, "calls": 3, "briefing": 4, "tools": 3, "rendering": 3, "shell": 3, "editing": 3,
    "text_protocol": 3, "policies": 3,
    "episode": 4, "record": 4, "played": 4, "tally": 4, "judging": 4, "snapshots": 4, "replay": 4,
    "sessions": 4, "completion": 4, "rooms": 4, "scores": 4, "roster": 4, "course": 4,
    "env": 5, "rubric": 5, "load": 5, "table": 5, "v1": 5, "toolset": 5, "openenv": 5,
    "cli": 6, "validate": 6, "report": 6, "report_file": 6, "mutants": 1, "audit": 6, "__main__": 6, "notebook": 6,
}  # fmt: skip
FACES: dict[str, set[str]] = {
    "verifiers": {"env", "rubric", "load", "table"},
    "verifiers v1": {"v1"},
    "OpenEnv": {"openenv"},
    "tools": {"toolset"},
}
FRAMEWORKS = {"verifiers", "datasets", "openai", "openenv", "fastapi", "uvicorn"}


def modules() -> list[Path]:
    return sorted(path for path in (ROOT / "codeenv").rglob("*.py") if "_data" not in path.parts)


def imports_of(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def place(path: Path) -> str:
    return path.relative_to(ROOT / "codeenv").parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_no_import_goes_up_a_floor(path: Path) -> None:
    if place(path) == "__init__":
        return  # its names are lazy
    assert place(path) in FLOORS, "a new module needs a floor"
    above = [
        name
        for name in imports_of(path)
        if name.startswith("codeenv.") and FLOORS.get(name.split(".")[1], 0) > FLOORS[place(path)]
    ]
    assert above == []


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_only_the_environment_knows_a_framework(path: Path) -> None:
    known = {name.split(".")[0] for name in imports_of(path)} & FRAMEWORKS
    if path == ROOT / "codeenv/sources/hub.py":
        known -= {"datasets"}
    assert not known or FLOORS.get(place(path), 0) >= 5


@pytest.mark.parametrize("face", FACES)
def test_a_face_knows_no_other_face(face: str) -> None:
    others = set().union(*FACES.values()) - FACES[face]
    for module in FACES[face]:
        known = {
            name.split(".")[1] for name in imports_of(ROOT / f"codeenv/{module}.py") if name.startswith("codeenv.")
        }
        assert not known & others


def test_importing_the_package_imports_no_framework() -> None:
    code = f"import sys, codeenv, codeenv.episode; print(sorted({FRAMEWORKS} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_folder_datasets_does_not_shadow_the_package() -> None:
    assert datasets.Dataset.from_list([{"a": 1}])[0] == {"a": 1}
    assert not Path(datasets.__file__ or "").is_relative_to(ROOT / "datasets")
    assert not list((ROOT / "datasets").glob("__init__.py"))
    assert not list((ROOT / "datasets").glob("*/__init__.py"))


@pytest.mark.parametrize("command", [["-c"], ["-P", "-c"]], ids=["cwd-on-path", "safe-path"])
def test_nor_from_the_checkout(command: list[str]) -> None:
    code = "import datasets; datasets.Dataset; print(datasets.__file__)"
    done = subprocess.run([sys.executable, *command, code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert "site-packages" in done.stdout


def test_tests_of_tasks_are_not_ours() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert config["tool"]["pytest"]["ini_options"]["testpaths"] == ["tests"]
    included = config["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert set(included) == {"prompts", "datasets"}


def test_no_byte_code_in_task_sets() -> None:
    tracked = subprocess.run(
        ["git", "ls-files", "datasets"], cwd=ROOT, capture_output=True, text=True
    ).stdout.splitlines()
    assert not [name for name in tracked if "__pycache__" in name or name.endswith(".pyc")]
