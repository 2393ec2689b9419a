"""A Dockerfile that asks for no more than every box can have: a Python, files in the working directory, packages."""

from __future__ import annotations

import json
import posixpath
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

PYTHON_IMAGE = re.compile(r"(?:docker\.io/)?(?:library/)?python(?::(?P<tag>[\w.-]+))?(?:@sha256:[0-9a-f]+)?")
IGNORED = ("CMD", "EXPOSE", "LABEL", "MAINTAINER", "STOPSIGNAL", "USER")
"""What changes nothing of a box in which a policy works."""
HARMLESS_ENV = re.compile(
    r"(?:PYTHON(?:UNBUFFERED|DONTWRITEBYTECODE)|PIP_\w+|UV_\w+|DEBIAN_FRONTEND|LANG|LC_ALL|TZ)=.*"
)
TERMINAL = {"tmux", "asciinema"}
"""What only a harness needs that types into a terminal."""
PIP = re.compile(r"(?:python3? -m )?pip3? install |uv pip install ")
PIP_FLAGS = {"--no-cache-dir", "--upgrade", "-U", "-q", "--quiet", "--system", "--break-system-packages"}


class Unprovided(ValueError):
    """The image needs more than a box can have; the text names the line."""


@dataclass
class Image:
    """What a Dockerfile makes. `python`: a version, None for any. `files`: what is copied, by absolute path."""

    python: str | None = None
    workdir: str = "/"
    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    executable: set[str] = field(default_factory=set[str])
    packages: list[str] = field(default_factory=list[str])


def read_dockerfile(context: Path) -> Image:
    """The image of `context/Dockerfile`. :raises Unprovided: it needs more than a box can have."""
    image = Image()
    stages = 0
    for line in _lines((context / "Dockerfile").read_text(encoding="utf-8")):
        word, _, rest = line.partition(" ")
        rest = rest.strip()
        match word.upper():
            case "FROM":
                stages += 1
                found = PYTHON_IMAGE.fullmatch(re.split(r"\s+(?:as|AS)\s+", rest)[0])
                if found is None or stages > 1:
                    raise Unprovided(f"{line}: only one stage, of an image of Python's, can be had")
                version = re.match(r"3\.\d+", found["tag"] or "")
                image.python = version[0] if version else None
            case "WORKDIR":
                image.workdir = posixpath.normpath(posixpath.join(image.workdir, rest.strip("\"'")))
            case "COPY" | "ADD":
                _copy(image, context, rest, line)
            case "RUN":
                _run(image, rest, line)
            case "ENV":
                if not all(HARMLESS_ENV.fullmatch(part) for part in shlex.split(rest)):
                    raise Unprovided(f"{line}: boxes have no variables of a task's")
            case name if name not in IGNORED:
                raise Unprovided(f"{line}: {name} is not known")
            case _:
                pass
    if not stages:
        raise Unprovided("there is no FROM")
    return image


def _lines(text: str) -> list[str]:
    kept = [line for line in text.replace("\r\n", "\n").split("\n") if not line.lstrip().startswith("#")]
    if heredoc := next((line for line in kept if re.search(r"<<-?\s*['\"]?\w+", line)), ""):
        raise Unprovided(f"{heredoc.strip()}: here-documents are not read")
    return [line.strip() for line in re.sub(r"\\[ \t]*\n", " ", "\n".join(kept)).split("\n") if line.strip()]


def _words(text: str) -> list[str]:
    return json.loads(text) if text.startswith("[") else shlex.split(text)


def _copy(image: Image, context: Path, rest: str, line: str) -> None:
    words = [word for word in _words(rest) if not re.match(r"--(?:chown|chmod|link)\b", word)]
    if len(words) < 2 or any(word.startswith("--") or "://" in word for word in words):
        raise Unprovided(f"{line}: only files beside the Dockerfile can be copied")
    *sources, target = words
    place = posixpath.normpath(posixpath.join(image.workdir, target))
    as_folder = target.endswith(("/", ".")) or len(sources) > 1
    for source in sources:
        found = sorted(context.glob(source.lstrip("/"))) if source.strip("./") else [context]
        if not found or any(not path.resolve().is_relative_to(context.resolve()) for path in found):
            raise Unprovided(f"{line}: {source} is not beside the Dockerfile")
        for path in found:
            if path.is_dir():
                files = [file for file in sorted(path.rglob("*")) if file.is_file() and not file.is_symlink()]
                for file in files:
                    if file != context / "Dockerfile":
                        _add(image, posixpath.join(place, file.relative_to(path).as_posix()), file)
            else:
                _add(image, posixpath.join(place, path.name) if as_folder or len(found) > 1 else place, path)


def _add(image: Image, place: str, file: Path) -> None:
    image.files[place] = file.read_bytes()
    if file.stat().st_mode & 0o100:
        image.executable.add(place)


def _run(image: Image, rest: str, line: str) -> None:
    for command in re.split(r"\s*(?:&&|;)\s*", " ".join(_words(rest)) if rest.startswith("[") else rest):
        if PIP.match(command):
            image.packages += _packages(image, shlex.split(PIP.sub("", command, count=1)), line)
        elif not _is_harmless(shlex.split(command)):
            raise Unprovided(f"{line}: only `pip install` can be had")


def _packages(image: Image, words: Sequence[str], line: str) -> list[str]:
    found: list[str] = []
    rest = iter(words)
    for word in rest:
        if word in ("-r", "--requirement"):
            place = posixpath.normpath(posixpath.join(image.workdir, next(rest, "")))
            if place not in image.files:
                raise Unprovided(f"{line}: {place} is not copied before")
            listed = image.files[place].decode("utf-8", "replace").split("\n")
            found += [name for text in listed if (name := re.sub(r"(?:^|\s)#.*", "", text).strip())]
        elif word not in PIP_FLAGS:
            found.append(word)
    if odd := next((name for name in found if name.startswith(("-", ".", "/")) or "://" in name), ""):
        raise Unprovided(f"{line}: {odd} is no package by name")
    return [name for name in found if name not in ("pip", "setuptools", "wheel", "uv")]


def _is_harmless(words: Sequence[str]) -> bool:
    """Of no effect in a box: directories that are made when files come, caches, a harness's own tools."""
    match words:
        case ["mkdir", *_] | ["rm", "-rf", "/var/lib/apt/lists/*"] | ["apt-get", "update" | "clean", *_] | []:
            return True
        case ["apt-get", "install", *named]:
            return {word for word in named if not word.startswith("-")} <= TERMINAL
        case _:
            return False
