"""The bus itself."""

from collections.abc import Callable

from . import topics
from .registry import Registry, Subscription


class RelayError(Exception):
    def __init__(self, errors: list[Exception]):
        super().__init__(f"{len(errors)} handler(s) failed")
        self.errors = errors


class Bus:
    def __init__(self):
        self._registry = Registry()

    def subscribe(
        self, pattern: str, handler: Callable[[str, object], None], *, priority: int = 0, once: bool = False
    ) -> Subscription:
        subscription = Subscription(topics.split(pattern), handler, priority, once, self._registry)
        self._registry.add(subscription)
        return subscription

    def publish(self, topic: str, payload: object = None) -> int:
        errors = []
        called = 0
        for subscription in self._registry.matching(topic):
            if not subscription.active:
                continue
            if subscription.once:
                subscription.cancel()
            called += 1
            try:
                subscription.handler(topic, payload)
            except Exception as error:
                errors.append(error)
        if errors:
            raise RelayError(errors)
        return called
