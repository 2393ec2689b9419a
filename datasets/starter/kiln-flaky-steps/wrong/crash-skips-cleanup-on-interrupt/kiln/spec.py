"""The text form of plans.

    # comment
    step fetch
      do download
    step build
      needs fetch, tools
      do compile
      retry 2 on Flaky, Busy
    step lint
      do check
      optional
    step sweep
      needs build
      do clean
      cleanup

Indentation does not matter. A step has exactly one `do` line and at most one of each other. Steps may be needed before
they are declared.
"""

import re

from kiln.model import Plan, SpecError, Step

_NAME = re.compile(r"[A-Za-z][\w.-]*")


def parse(text):
    """Return the Plan; raise SpecError."""
    drafts = []  # (line of the step, {"name": ..., property: ...})
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split(None, 1)
        if not words or words[0].startswith("#"):
            continue
        verb, rest = words[0], words[1].strip() if len(words) > 1 else ""
        if verb == "step":
            name = _name(rest, number)
            if any(draft["name"] == name for _, draft in drafts):
                raise SpecError(number, f"step {name} is declared twice")
            drafts.append((number, {"name": name}))
        elif verb in _PROPERTIES:
            if not drafts:
                raise SpecError(number, f"{verb} outside of a step")
            field, read = _PROPERTIES[verb]
            draft = drafts[-1][1]
            if field in draft:
                raise SpecError(number, f"second {verb} line")
            draft[field] = read(rest, number)
        else:
            raise SpecError(number, f"unknown word {verb}")
    for number, draft in drafts:
        if "action" not in draft:
            raise SpecError(number, f"step {draft['name']} does nothing")
    for _, draft in drafts:
        if "retry" in draft:
            draft["retry"], draft["retry_on"] = draft["retry"]
    steps = tuple(Step(**draft) for _, draft in drafts)
    lines = [number for number, _ in drafts]
    _check(steps, lines)
    _check_cleanup(steps, lines)
    return Plan(steps)


def _name(text, number):
    if not _NAME.fullmatch(text):
        raise SpecError(number, f"bad name {text!r}")
    return text


def _names(text, number):
    return tuple(_name(part.strip(), number) for part in text.split(","))


def _retry(text, number):
    """Return the number of retries and the kinds of errors."""
    match = re.fullmatch(r"([0-9])(?:\s+on\s+(.+))?", text)
    if not match:
        raise SpecError(number, f"bad retry {text!r}")
    kinds = match[2]
    return int(match[1]), None if kinds is None else frozenset(_names(kinds, number))


def _flag(text, number):
    if text:
        raise SpecError(number, f"unexpected {text!r}")
    return True


_PROPERTIES = {
    "do": ("action", _name),
    "needs": ("needs", _names),
    "retry": ("retry", _retry),
    "optional": ("optional", _flag),
    "cleanup": ("cleanup", _flag),
}


def _check(steps, lines):
    """Needed steps exist, and there is no cycle."""
    known = {step.name for step in steps}
    for step, line in zip(steps, lines):
        for name in step.needs:
            if name not in known:
                raise SpecError(line, f"{step.name} needs unknown {name}")
    settled = set()
    while len(settled) < len(steps):
        ready = [step.name for step in steps if step.name not in settled and settled.issuperset(step.needs)]
        if not ready:
            line = next(line for step, line in zip(steps, lines) if step.name not in settled)
            raise SpecError(line, "steps need each other")
        settled.update(ready)


def _check_cleanup(steps, lines):
    cleanup = {step.name for step in steps if step.cleanup}
    for step, line in zip(steps, lines):
        if step.cleanup and not step.needs:
            raise SpecError(line, f"cleanup step {step.name} needs nothing")
        if not step.cleanup and cleanup.intersection(step.needs):
            raise SpecError(line, f"{step.name} needs a cleanup step")
