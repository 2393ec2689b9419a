"""From recordings to a file."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from codeenv.record import Recording, RecordingError, Summary
from codeenv.record.folder import Listing
from codeenv.report.episode import section
from codeenv.report.figures import outcome_of, overview_of
from codeenv.report.page import page
from codeenv.sandbox.api import MiB
from codeenv.sources.expected import write_whole

LIMIT = 40 * MiB
ROWS = 20_000  # episodes that are listed
ROW_SIZE = 1200  # bytes that one is counted with, as the page without any is with FRAME
FRAME = 64 * 1024
SHARE = 8  # of a folder's limit, one episode has at most this part
MISFITS = 16  # episodes in a row that have no room any more, after which none is tried
FIRST = ("infra", "model", "open", "failed", "expired", "limit", "solved")
"""Whose timelines go in before others'."""
BEGINNING = b"<!doctype html>"


@dataclass(frozen=True)
class Written:
    path: Path
    episodes: int
    timelines: int
    """Of how many episodes the page has the turns."""
    size: int
    """Bytes."""
    unreadable: dict[str, str] = field(default_factory=dict[str, str])
    """Files of the folder that are no recordings, and why."""


def write_report(source: str | Path, out: str | Path, *, limit: int = LIMIT) -> Written:
    """Of one recording, or of a folder of them; `out` is then whole, or what it was before.

    :param limit: about how many bytes the file has. Of a folder, infra failures and failures get their timelines
        first, and the page says whose are left out.
    :raises FileNotFoundError: there is no such source. :raises RecordingError: the file is
        no recording. :raises ValueError: the folder has none, or `out` cannot be written, or is there and is no HTML
        file.
    """
    source, out = Path(source).expanduser(), Path(out).expanduser()
    with _writing(out):
        _check(out)
    if source.is_dir():
        listing = Listing(source)
        rows = listing.read()
        if not rows:
            why = next((f": {error}" for error in listing.unreadable.values()), "")
            raise ValueError(
                f"{source}: has no recordings (files *.jsonl, as `codeenv eval --record` writes them){why}"
            )
        unreadable = listing.unreadable
        anchors, sections = _timelines(source, rows, limit)
    else:
        recording = Recording.load(source, partial=True)
        rows, unreadable = [recording.summary], {}
        anchors = {rows[0].file: "e1"}
        sections = [section(recording, "e1", {rows[0].id: "e1"}, limit)]
    text = page(
        name=source.resolve().name,
        single=not source.is_dir(),
        written=datetime.now(UTC).isoformat(" ", "minutes").removesuffix("+00:00") + " UTC",
        overview=overview_of(rows),
        rows=rows[:ROWS],
        more_rows=max(0, len(rows) - ROWS),
        anchors=anchors,
        sections=sections,
        unreadable=unreadable,
    )
    with _writing(out):
        write_whole(out.resolve(), text)  # of a link, what it leads to
    return Written(out, len(rows), len(sections), out.stat().st_size, unreadable)


@contextmanager
def _writing(out: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise ValueError(f"{out}: cannot be written: {error.strerror or error}") from error


def _check(out: Path) -> None:
    if not out.parent.is_dir():
        raise ValueError(f"{out}: there is no folder {out.parent} to write it into")
    if out.is_dir():
        raise ValueError(f"{out} is a folder; the report is one file, as {out / 'report.html'}")
    if out.exists() and not out.is_file():
        raise ValueError(f"{out} is neither a file nor new: the report is written to a file")
    if out.exists():
        with out.open("rb") as file:
            if (beginning := file.read(len(BEGINNING))) and beginning.lower() != BEGINNING:
                raise ValueError(f"{out} is there and is no HTML file: it is not overwritten")


def _timelines(folder: Path, rows: Sequence[Summary], limit: int) -> tuple[dict[str, str], list[str]]:
    """The anchor of each file whose timeline has room, and the timelines, in order of the rows."""
    anchors = {row.file: f"e{number}" for number, row in enumerate(rows, 1)}
    forks = {row.id: anchors[row.file] for row in rows}
    order = sorted(rows[:ROWS], key=lambda row: FIRST.index(outcome_of(row)))
    left = limit - FRAME - ROW_SIZE * len(order)
    misfits = 0
    found: dict[str, str] = {}
    for row in order:
        if misfits >= MISFITS or left <= 0:
            break
        try:
            recording = Recording.load(folder / row.file, partial=True)
        except (RecordingError, FileNotFoundError):  # changed since it was listed
            continue
        made = section(recording, anchors[row.file], forks, limit // SHARE)
        size = len(made.encode())
        if size > left:
            misfits += 1
            continue
        misfits = 0
        left -= size
        found[row.file] = made
    shown = {file: anchor for file, anchor in anchors.items() if file in found}
    return shown, [found[file] for file in shown]
