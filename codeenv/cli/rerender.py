"""`codeenv replay --sandbox none`: what the model saw, made again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codeenv.cli.recordings import code_of, heading, printable, say, say_diff, unread, worked
from codeenv.cli.terminal import console, print_json, table

if TYPE_CHECKING:
    from codeenv.prompts import Prompts
    from codeenv.record.tasks import TaskBook
    from codeenv.replay.rerender import Rendered

SHOWN_TEXTS = 20  # of a recording, line by line


@dataclass(frozen=True)
class _Text:
    """`detail` is what differs, line by line; `text` what it is now, where it is another."""

    turn: int
    call: int
    role: str
    tokens_before: int
    tokens_after: int
    same: bool
    whole: bool
    detail: str
    text: str

    @classmethod
    def of(cls, made: Rendered) -> _Text:
        from codeenv.replay.difference import detail_of

        names = ("turn", "call", "role", "tokens_before", "tokens_after", "same", "whole")
        detail = "" if made.same else detail_of(made.before, made.after)
        return cls(**{name: getattr(made, name) for name in names}, detail=detail, text="" if made.same else made.after)


@dataclass(frozen=True)
class _Texts:
    file: str
    heading: str
    texts: list[_Text]
    note: str

    @property
    def differing(self) -> list[_Text]:
        """A text that was not recorded whole may be another for that reason alone."""
        return [text for text in self.texts if not text.same and text.whole]


def rerender(
    paths: Sequence[Path], book: TaskBook, prompts: Prompts, observation_tokens: int | None, as_json: bool
) -> int:
    """The exit code, after all is printed."""

    async def work(path: Path) -> _Texts:
        from anyio import to_thread

        return await to_thread.run_sync(_made, path, book, prompts, observation_tokens)

    done = worked("rendering", paths, work, 1)
    found = [each for _, each in done if isinstance(each, _Texts)]
    different = [each for each in found if each.differing]
    if as_json:
        counts = {"recordings": len(done), "same": len(found) - len(different), "different": len(different)}
        print_json({**counts, "unread": unread(done), "episodes": [_plain(each) for each in found]})
    else:
        for each in found if len(paths) == 1 else different:
            _show(each)
        texts = [text for each in found for text in each.texts]
        tokens = f"{sum(text.tokens_before for text in texts)} -> {sum(text.tokens_after for text in texts)}"
        say(f"{len(found) - len(different)} of {len(done)} recordings render the same, {len(different)} differ")
        say(f"tokens of all that was said to the model: {tokens}")
    return code_of(done, failed=bool(different))


def _made(path: Path, book: TaskBook, prompts: Prompts, observation_tokens: int | None) -> _Texts:
    from codeenv.record import Recording
    from codeenv.record.tasks import TaskChanged, TaskMissing
    from codeenv.replay.rerender import rerender

    recording, task, note = Recording.load(path, partial=True), None, ""
    try:
        task = book.find(recording)
    except (TaskMissing, TaskChanged) as error:
        note = f"the task's message is left as it was: {error}"
    made = rerender(recording, task, prompts=prompts, observation_tokens=observation_tokens)
    return _Texts(str(path), heading(recording), [_Text.of(each) for each in made], note)


def _show(done: _Texts) -> None:
    from rich.markup import escape

    say(done.heading)
    shown = table(">turn", ">call", "text", ">tokens", ">now", "what differs")
    for text in done.texts:
        what = "same" if text.same else "[red]the text[/]" if text.whole else "[yellow]was not recorded whole[/]"
        numbers = [str(text.turn), str(text.call or "-")]
        tokens = [str(text.tokens_before), str(text.tokens_after)]
        shown.add_row(*numbers, escape(printable(text.role)), *tokens, what)
    console().print(shown)
    for text in done.differing[:SHOWN_TEXTS]:
        place = f"turn {text.turn}, call {text.call}" if text.turn else "before the first turn"
        say(f"{place}: {text.role}", "bold")
        say_diff(text.detail)
    if done.note:
        say(f"note: {done.note}")


def _plain(done: _Texts) -> dict[str, Any]:
    texts = [asdict(text) for text in done.texts]
    return {"file": done.file, "same": not done.differing, "note": done.note, "texts": texts}
