"""Exercism's Python track: a folder an exercise, `.meta/config.json` at its heart (`exercism:DIR`).

`files.solution` is what the policy works on, `files.editor` what it may read, `files.test` is hidden, `files.example`
or `files.exemplar` the reference. Other tracks need their languages' tools, which boxes do not have.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from codeenv.graders import FunctionsGrader, PytestGrader
from codeenv.sources.rows import PublicSet, Row, RowFault, identifier
from codeenv.syntax import parse
from codeenv.task import Answer, Task

CONFIG = Path(".meta") / "config.json"
TEXTS = ("introduction.md", "introduction.append.md", "instructions.md", "instructions.append.md")
REFERENCES = (".meta/example.py", ".meta/exemplar.py")
REACHING = re.compile(
    rb"\b(?:mock|patch|capsys|capfd|monkeypatch|tmp_path|inspect|importlib|StringIO|redirect_stdout)\b"
)
"""What tests use that need the solution's process."""


def folders(path: Path) -> Iterable[Row]:
    """An exercise, a directory of exercises, or a whole track. Deprecated exercises are not part of a track.

    :raises FileNotFoundError: there is none below `path`.
    """
    track = _json(path / "config.json") if (path / "exercises").is_dir() else {}
    listed = _listed(track)
    found = [path] if (path / CONFIG).is_file() else sorted(config.parents[1] for config in path.glob(f"*/{CONFIG}"))
    found = found or sorted(config.parents[1] for config in path.glob(f"exercises/*/*/{CONFIG}"))
    if not found:
        raise FileNotFoundError(f"{path}: neither an exercise ({CONFIG}) nor a directory of exercises nor a track")
    for folder in found:
        entry = listed.get(folder.name, {})
        if entry.get("status") != "deprecated":
            yield {"name": folder.name, "folder": folder, "track": track, "entry": entry}


def _listed(track: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    kinds = cast(Mapping[str, Any], track.get("exercises", {}))
    return {entry["slug"]: entry for kind in ("concept", "practice") for entry in kinds.get(kind, ())}


def to_task(row: Row) -> Task:
    folder: Path = row["folder"]
    config = _json(folder / CONFIG)
    files = config.get("files")
    if not isinstance(files, dict):
        raise RowFault(f"{CONFIG}: files: missing")
    listed = cast(Mapping[str, Any], files)
    slug = folder.name.replace("-", "_")
    work = _paths(listed, "solution") or [f"{slug}.py"]
    hidden = _paths(listed, "test") or [f"{slug}_test.py"]
    if others := sorted({path for path in (*work, *hidden) if not path.endswith(".py")}):
        raise RowFault(f"files: {', '.join(others)}: only the Python track can be graded, boxes have no other tools")
    start = {path: _read(folder, path, "solution") for path in work}
    beside = {path: _read(folder, path, "editor") for path in _paths(listed, "editor")}
    tests = {path: _read(folder, path, "test") for path in hidden}
    reference = _reference(folder, listed, work)
    # Where classes say themselves what they are equal to, that is what is tested.
    own_equality = any(b"def __eq__(" in data for data in (reference or {}).values())
    apart = not own_equality and not any(REACHING.search(data) for data in tests.values())
    entry: Mapping[str, Any] = row["entry"]
    return Task(
        id=identifier(f"exercism/{folder.name}"),
        instruction=_instruction(folder, work),
        files={**start, **beside},
        tests={**tests, **beside},
        solution=reference,
        protected=tuple(beside),
        answer=Answer(path=work[0], entry_point=_only_definition(start[work[0]])) if len(work) == 1 else None,
        grader=FunctionsGrader() if apart else PytestGrader(),
        metadata={
            "source": "exercism",
            "platform": "exercism/python",
            **({"difficulty": entry["difficulty"]} if "difficulty" in entry else {}),
            "tags": [*entry.get("practices", ()), *entry.get("concepts", ())],
        },
    )


def _instruction(folder: Path, work: Sequence[str]) -> str:
    texts = [folder / ".docs" / name for name in TEXTS]
    parts = [text.read_text(encoding="utf-8").strip() for text in texts if text.is_file()]
    if not any(parts):
        raise RowFault(".docs/instructions.md: missing or empty")
    names = " and ".join(f"`{path}`" for path in work)
    return "\n\n".join([*parts, f"Write the solution in {names}."]) + "\n"


def _reference(folder: Path, listed: Mapping[str, Any], work: Sequence[str]) -> dict[str, bytes] | None:
    given = _paths(listed, "example") or _paths(listed, "exemplar")
    given = given or [path for path in REFERENCES if (folder / path).is_file()]
    if not given:
        return None
    if len(given) != len(work):
        raise RowFault(f"files: {len(given)} references for {len(work)} files of a solution")
    return {path: _read(folder, name, "example") for path, name in zip(work, given, strict=True)}


def _only_definition(stub: bytes) -> str:
    """The one function or class that a stub defines; empty when there are none or several."""
    try:
        body = parse(stub).body
    except (SyntaxError, ValueError):
        return ""
    names = [node.name for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)]
    return names[0] if len(names) == 1 else ""


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise RowFault(f"{path.name}: cannot be read: {type(error).__name__}") from error
    if not isinstance(found, dict):
        raise RowFault(f"{path.name}: must be an object")
    return cast(dict[str, Any], found)


def _paths(listed: Mapping[str, Any], kind: str) -> list[str]:
    found = listed.get(kind, [])
    if not isinstance(found, list) or not all(isinstance(path, str) for path in found):  # pyright: ignore[reportUnknownVariableType]
        raise RowFault(f"files.{kind}: must be a list of paths")
    return cast(list[str], found)


def _read(folder: Path, path: str, kind: str) -> bytes:
    file = (folder / path).resolve()
    if not file.is_relative_to(folder.resolve()):
        raise RowFault(f"files.{kind}: {path}: is not in the exercise's folder")
    try:
        return file.read_bytes()
    except OSError as error:
        raise RowFault(f"files.{kind}: {path}: cannot be read: {error.strerror}") from error


SETS = (
    PublicSet(
        name="exercism",
        title="Exercism, Python track",
        licence="MIT",
        to_task=to_task,
        read=folders,
    ),
)
