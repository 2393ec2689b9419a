"""What an episode's workspace looks like, as its recording has followed it: no round trip to the box."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from codeenv.html import styled
from codeenv.record.schema import Change
from codeenv.record.workspace import Seen, Tree, changes

Content = str | bytes | None


class Files(Mapping[str, Content]):
    """The files of a workspace but for dot-files and caches, by path: text where it is UTF-8, else bytes; None for a
    file that is too large to be followed (over 1 MiB, or 4 MiB of all together), which `await ep.read(path)` shows.
    Of a link, its target."""

    def __init__(self, tree: Tree) -> None:
        self._seen = dict(sorted(tree.seen.items()))
        self.note = tree.note
        """Why this is not all of it, or nothing."""

    def __getitem__(self, path: str) -> Content:
        data = self._seen[path].text
        if data is None:
            return None
        try:
            return data.decode()
        except UnicodeDecodeError:
            return data

    def __iter__(self) -> Iterator[str]:
        return iter(self._seen)

    def __len__(self) -> int:
        return len(self._seen)

    def __repr__(self) -> str:
        width = max(map(len, self._seen), default=0)
        lines = [f"{path:{width}}  {_about(seen)}" for path, seen in self._seen.items()]
        return "\n".join([*lines, *filter(None, [self.note])]) or "no files"

    def _repr_html_(self) -> str:
        return styled("files", files={path: None if seen.link else seen.size for path, seen in self._seen.items()})


def _about(seen: Seen) -> str:
    if seen.link:
        return f"-> {(seen.text or b'').decode('utf-8', 'replace')}"
    return f"{seen.size} bytes"


@dataclass(frozen=True, repr=False)
class Diff:
    """What has changed, file by file in order of path."""

    changes: tuple[Change, ...]
    note: str = ""
    """Why this is not all of it, or nothing."""

    @classmethod
    def between(cls, before: Tree, after: Tree) -> Diff:
        return cls(tuple(changes(before, after)), after.note)

    def __iter__(self) -> Iterator[Change]:
        return iter(self.changes)

    def __len__(self) -> int:
        return len(self.changes)

    def __repr__(self) -> str:
        """As unified diffs; what has none is told in a line."""
        parts = [change.diff or _told(change) for change in self.changes]
        return "".join([*parts, *filter(None, [self.note])]).rstrip("\n") or "no changes"

    def _repr_html_(self) -> str:
        return styled("diff", changes=self.changes, note=self.note)


def _told(change: Change) -> str:
    about = "binary" if change.binary else f"-> {change.target}" if change.target is not None else "not shown"
    mode = f", mode {change.mode:o}" if change.mode is not None else ""
    return f"{change.change} {change.path} ({about}, {change.size} bytes{mode})\n"
