"""Who has subscribed to what."""

from collections.abc import Callable
from dataclasses import dataclass, field

from . import topics


@dataclass(eq=False)
class Subscription:
    pattern: list[str]
    handler: Callable[[str, object], None]
    priority: int
    once: bool
    registry: "Registry" = field(repr=False)
    active: bool = True

    def cancel(self) -> None:
        self.active = False
        self.registry.remove(self)


class Registry:
    def __init__(self):
        self._subscriptions: list[Subscription] = []
        self._cache: dict[str, tuple[Subscription, ...]] = {}

    def add(self, subscription: Subscription) -> None:
        self._subscriptions.append(subscription)
        self._cache.clear()

    def remove(self, subscription: Subscription) -> None:
        if subscription in self._subscriptions:
            self._subscriptions.remove(subscription)
            self._cache.clear()

    def matching(self, topic: str) -> tuple[Subscription, ...]:
        """The subscriptions for a topic, in the order in which they are to be called."""
        if topic not in self._cache:
            segments = topics.split(topic)
            found = [s for s in self._subscriptions if topics.topic_matches(s.pattern, segments)]
            self._cache[topic] = tuple(sorted(found, key=lambda s: -s.priority))
        return self._cache[topic]
