"""Images that were made and verified from this host, by what they were made from."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from codeenv.sandbox.packages import cache_root


@dataclass(frozen=True)
class Made:
    """An image that has been verified."""

    id: str
    """As `SandboxSpec.image` takes it."""
    packages: dict[str, str]
    """Python packages and their versions."""
    made: float
    """Seconds since 1970."""
    seconds: float
    """What preparing, keeping and verifying it took."""
    cached: bool = False


def _folder() -> Path:
    return cache_root() / "beam-images"


def get(key: str) -> Made | None:
    return _read(_folder() / f"{key}.json")


def put(key: str, made: Made) -> None:
    _folder().mkdir(parents=True, exist_ok=True)
    (_folder() / f"{key}.json").write_text(json.dumps(asdict(made)))


def lacking(image: str, packages: Sequence[str]) -> list[str] | None:
    """Which of these requirements an image does not meet. None: it was not made from here, and is not known."""
    for path in _folder().glob("*.json"):
        if (made := _read(path)) and made.id == image:
            return [each for each in packages if not is_met(each, made.packages)]
    return None


def is_met(requirement: str, packages: Mapping[str, str]) -> bool:
    """Whether packages, by their names, meet it. A marker counts as it does for the Python that we run under."""
    wanted = Requirement(requirement)
    if wanted.marker and not wanted.marker.evaluate():
        return True
    versions = {canonicalize_name(name): version for name, version in packages.items()}
    version = versions.get(canonicalize_name(wanted.name))
    return version is not None and wanted.specifier.contains(version, prereleases=True)


def _read(path: Path) -> Made | None:
    try:
        found: dict[str, Any] = json.loads(path.read_bytes())
        return replace(Made(**found), cached=True)
    except (OSError, ValueError, TypeError):
        return None
