"""What the model saw, made again of what it was made of: by other templates, to another budget. Nothing is run."""

from __future__ import annotations

from dataclasses import dataclass

from codeenv.briefing import system_message, task_message
from codeenv.episode import EpisodeSettings, counter
from codeenv.prompts import Prompts, default_prompts
from codeenv.record import Recording
from codeenv.record.recorder import TEXT_LIMIT
from codeenv.record.schema import Raw, Result
from codeenv.rendering import Source, rendered
from codeenv.replay.play import settings_of
from codeenv.task import Task


@dataclass(frozen=True)
class Rendered:
    """One text, as it was and as it is now. `call` counts a turn's calls from 1; of turn 0 are the messages before the
    first, by their `role`. `whole`: whether the recording has all that it was made of; without, the same templates may
    give another text."""

    turn: int
    call: int
    role: str
    before: str
    after: str
    tokens_before: int
    tokens_after: int
    whole: bool = True

    @property
    def same(self) -> bool:
        return self.before == self.after


def rerender(
    recording: Recording,
    task: Task | None = None,
    *,
    prompts: Prompts | None = None,
    observation_tokens: int | None = None,
) -> list[Rendered]:
    """Every text that the policy was given, in order. Blocks, for as long as it takes to count the tokens.

    :param task: None: the message that has the task's text is left as it was. :param observation_tokens: the budget of
        one tool's output; as it was by default.
    :raises ValueError: a template fails on the values, or the budget is not one. :raises RecordingError: the recording
        is of settings that are none of ours.
    """
    settings = settings_of(recording)
    if observation_tokens is not None:
        settings = EpisodeSettings.model_validate(settings.model_dump() | {"observation_tokens": observation_tokens})
    prompts = prompts or default_prompts()
    found = _prompt(recording, task, settings, prompts)
    for turn in recording.turns:
        for number, result in enumerate(turn.results, 1):
            found.append(_result(turn.turn, number, result, settings, prompts))
    return found


def _prompt(recording: Recording, task: Task | None, settings: EpisodeSettings, prompts: Prompts) -> list[Rendered]:
    if recording.start is None:
        return []
    workdir = recording.start.workdir
    now = {"system": system_message(settings, prompts, workdir)}
    if task is not None:
        now["user"] = task_message(task, prompts, workdir, settings.protocol)
    was = {str(said.get("role")): str(said.get("content") or "") for said in recording.start.prompt}
    roles = [role for role in ("system", "user") if was.get(role) or now.get(role)]
    return [_text(0, 0, role, was.get(role, ""), now.get(role, was.get(role, ""))) for role in roles]


def _result(turn: int, call: int, result: Result, settings: EpisodeSettings, prompts: Prompts) -> Rendered:
    source = _source(result.raw) if result.raw else Source(text=result.text)
    after = rendered(source, prompts, counter(), settings.observation_tokens)
    if result.tool == "answer" or (result.tool == "none" and settings.protocol == "answer"):
        after = result.text  # which no model sees
    return _text(turn, call, result.tool, result.text, after, whole=not result.raw or _is_whole(result.raw))


def _text(turn: int, call: int, role: str, before: str, after: str, *, whole: bool = True) -> Rendered:
    count = counter().count(before)
    return Rendered(turn, call, role, before, after, count, count if after == before else counter().count(after), whole)


def _source(raw: Raw) -> Source:
    output = raw.output.bytes if raw.output else b""
    return Source(raw.template, raw.values, output, raw.output_bytes, raw.saved_to, raw.text, raw.where)


def _is_whole(raw: Raw) -> bool:
    kept = len(raw.output.bytes) if raw.output else 0
    return kept >= raw.output_bytes and len(raw.text) < TEXT_LIMIT
