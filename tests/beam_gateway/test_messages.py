"""The classes made from the SDK's metadata say the same bytes as the SDK's own."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from typing import Any, get_args, get_origin, get_type_hints

import betterproto
import pytest
from beta9.clients import gateway, image, pod, types, volume

from tests.beam_gateway.messages import message_class

# Classes with a `oneof` are not supported, and one of the SDK's is no message at all.
ASIDE = {"ContainerStreamMessage", "SyncContainerWorkspaceRequest"}
MESSAGES = sorted(
    {
        kind
        for module in (gateway, image, pod, types, volume)
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, betterproto.Message) and kind.__module__ == module.__name__
        if kind.__name__ not in ASIDE
    },
    key=lambda kind: (kind.__module__, kind.__name__),
)
SAMPLES: dict[type, Any] = {
    str: "wörd", bytes: b"\0\xff", bool: True, int: 77, float: 1.5, datetime: datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
}  # fmt: skip


def sample(hint: Any, depth: int) -> Any:
    if get_origin(hint) is list:
        return [sample(get_args(hint)[0], depth)] * 2
    if get_origin(hint) is dict:
        key, value = get_args(hint)
        return {sample(key, depth): sample(value, depth)}
    hint = next((part for part in get_args(hint) if part is not type(None)), hint)
    if hint in SAMPLES:
        return SAMPLES[hint]
    return list(hint)[-1] if issubclass(hint, betterproto.Enum) else filled(hint, depth - 1)


def filled(kind: type[betterproto.Message], depth: int = 3) -> betterproto.Message:
    """A message with all its fields set, those of messages in it as well."""
    hints = get_type_hints(kind)
    return kind(**{field.name: sample(hints[field.name], depth) for field in dataclasses.fields(kind)} if depth else {})


@pytest.mark.parametrize("kind", MESSAGES, ids=lambda kind: f"{kind.__module__.rpartition('.')[2]}.{kind.__name__}")
def test_both_ways(kind: type[betterproto.Message]) -> None:
    theirs = filled(kind)
    ours = message_class(kind).FromString(bytes(theirs))
    assert {field.name for field, _ in ours.ListFields()} == {field.name for field in dataclasses.fields(kind)}
    assert kind().parse(ours.SerializeToString()) == theirs


def test_a_field_that_is_not_given_is_not_there() -> None:
    made = message_class(pod.CreatePodRequest)
    assert not made(stub_id="a").HasField("image_id")
    assert made.FromString(bytes(pod.CreatePodRequest(image_id=""))).HasField("image_id")


def test_what_is_not_supported() -> None:
    with pytest.raises(TypeError, match="oneof"):
        message_class(gateway.ContainerStreamMessage)
