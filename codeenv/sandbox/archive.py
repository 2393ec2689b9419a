"""A tree of files as one value: how a workspace leaves a box and enters another."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Kind = Literal["file", "directory", "link"]
KINDS: dict[bytes, Kind] = {b"f": "file", b"d": "directory", b"l": "link"}
"""As a local box's agent names them; it has more, for what has no place in an archive."""


@dataclass(frozen=True)
class ArchiveLimits:
    """What an export may hold. Over `max_bytes` or `max_entries` there is no archive at all."""

    max_bytes: int = 64 * 1024 * 1024
    max_entries: int = 10_000
    max_file_bytes: int | None = None
    """A larger file is left out, and counts for nothing; `Archive.large` names it."""
    leave_out: tuple[str, ...] = ()
    """Names of files and directories that are left out, with what is below them; `*` may stand at one end of a name."""


@dataclass(frozen=True)
class Entry:
    """One file, directory or symbolic link. `data` is a file's content or a link's target; empty in a listing."""

    path: str
    kind: Kind
    mode: int
    size: int = 0
    data: bytes = b""


def clean_path(path: str) -> str:
    """`path` as it stands in an archive: relative, normal, below the root.

    :raises ValueError: it is empty, absolute, leaves the root, or has a NUL.
    """
    normal = posixpath.normpath(path)
    if not path or "\0" in path or normal in (".", "..") or normal.startswith(("/", "../")):
        raise ValueError(f"{path!r} is not a relative path below the root")
    return normal


def link_stays_inside(path: str, target: str) -> bool:
    """Whether a link at `path` with that target points below the archive's root, by name alone."""
    landing = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    return not target.startswith("/") and landing != ".." and not landing.startswith("../")


@dataclass(frozen=True)
class Archive:
    """Immutable. `entries` by path, parents before children; `skipped` names what was left behind: special files,
    unreadable ones, links that leave the tree."""

    entries: Mapping[str, Entry] = field(default_factory=dict[str, Entry])
    skipped: tuple[str, ...] = ()
    large: Mapping[str, int] = field(default_factory=dict[str, int])
    """Files that were left out for their size, in bytes (`ArchiveLimits.max_file_bytes`)."""

    @classmethod
    def of(cls, files: Mapping[str, bytes], modes: Mapping[str, int] | None = None) -> Archive:
        modes = modes or {}
        return cls({p: Entry(p, "file", modes.get(p, 0o644), len(d), d) for p, d in sorted(files.items())})

    @classmethod
    def from_directory(cls, root: Path) -> Archive:
        """Files below `root`, without byte-code and links. :raises FileNotFoundError: there is no such directory."""
        if not root.is_dir():
            raise FileNotFoundError(f"{root} is not a directory")
        paths = sorted(
            p for p in root.rglob("*") if p.is_file() and "__pycache__" not in p.parts and not p.is_symlink()
        )
        names = {p.relative_to(root).as_posix(): p for p in paths}
        return cls.of(
            {name: p.read_bytes() for name, p in names.items()},
            {name: 0o755 if p.stat().st_mode & 0o100 else 0o644 for name, p in names.items()},
        )

    @classmethod
    def of_rows(cls, rows: list[list[bytes]]) -> Archive:
        """From what a local box's agent sent: kind, path, mode, content; `+` goes on with the file named before. The
        box is not trusted: names are checked again here, and what would leave the tree is left behind."""
        entries: dict[str, Entry] = {}
        pieces: dict[str, list[bytes]] = {}
        skipped: list[str] = []
        large: dict[str, int] = {}
        for kind, raw, mode, data in rows:
            path = clean_path(os.fsdecode(raw))
            if kind == b"+":
                pieces[path].append(data)
            elif kind == b"s":
                large[path] = int(data)
            elif kind not in KINDS or (kind == b"l" and not link_stays_inside(path, os.fsdecode(data))):
                skipped.append(path)
            else:
                entries[path] = Entry(path, KINDS[kind], int(mode), len(data), data)
                pieces[path] = [data]
        for path, parts in pieces.items():
            if len(parts) > 1:
                data = b"".join(parts)
                entries[path] = Entry(path, "file", entries[path].mode, len(data), data)
        return cls(entries, tuple(skipped), large)

    @property
    def files(self) -> dict[str, bytes]:
        return {entry.path: entry.data for entry in self.entries.values() if entry.kind == "file"}

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries.values())

    def without(self, paths: set[str]) -> Archive:
        return Archive({p: e for p, e in self.entries.items() if p not in paths}, self.skipped)

    def overlay(self, other: Archive) -> Archive:
        """This tree with `other` laid over it: where a path of `other` meets a file or link of ours, also as one of its
        parents, or a directory of ours is in a file's place, ours goes."""
        merged: dict[str, Entry] = dict(self.entries)
        folders = {parent for path in merged for parent in _parents(path)}
        for path, entry in other.entries.items():
            for parent in _parents(path):
                if parent in merged and merged[parent].kind != "directory":
                    del merged[parent]
                folders.add(parent)
            if path in folders and entry.kind != "directory":
                merged = {p: e for p, e in merged.items() if not p.startswith(path + "/")}
            merged.pop(path, None)
            merged[path] = entry
        return Archive(merged, self.skipped)


def _parents(path: str) -> list[str]:
    return [path[:i] for i, char in enumerate(path) if char == "/"]
