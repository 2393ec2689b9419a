"""Topics and patterns."""


def split(name: str) -> list[str]:
    segments = name.split(".")
    if not all(segments):
        raise ValueError(f"empty segment in {name!r}")
    return segments


def topic_matches(pattern: list[str], topic: list[str]) -> bool:
    if not pattern:
        return not topic
    first, rest = pattern[0], pattern[1:]
    if first == "**":
        return any(topic_matches(rest, topic[n:]) for n in range(1 if rest else 0, len(topic) + 1))
    return bool(topic) and first in ("*", topic[0]) and topic_matches(rest, topic[1:])
