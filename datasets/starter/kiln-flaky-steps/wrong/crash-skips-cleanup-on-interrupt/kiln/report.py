"""Reports of runs."""

_STATUSES = ("ok", "tolerated", "failed", "skipped")


def render(result):
    """A line for each step, and a summary."""
    lines = [_line(item) for item in result.steps]
    statuses = [item.status for item in result.steps]
    counts = [f"{statuses.count(status)} {status}" for status in _STATUSES if status in statuses]
    lines.append(f"run {'ok' if result.ok else 'failed'}: {', '.join(counts) or 'nothing to do'}")
    return "\n".join(lines) + "\n"


def _line(item):
    text = f"{item.step.name}: {item.status}"
    if item.attempts > 1:
        text += f" after {item.attempts} attempts"
    if item.error is not None:
        text += f" ({item.error})"
    return text
