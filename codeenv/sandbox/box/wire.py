"""Frames between the host and the agent, both ways: 4 bytes length of the body, 1 byte kind, 4 bytes request id, then
the body: fields, each 4 bytes length and its bytes. Runs on both sides."""

from collections.abc import Iterator

HEADER = 9


def pack(kind: bytes, request: int, fields: list[bytes]) -> bytes:
    body = b"".join(len(field).to_bytes(4, "big") + field for field in fields)
    return len(body).to_bytes(4, "big") + kind + request.to_bytes(4, "big") + body


def unpack(body: bytes) -> list[bytes]:
    fields: list[bytes] = []
    at = 0
    while at < len(body):
        size = int.from_bytes(body[at : at + 4], "big")
        fields.append(body[at + 4 : at + 4 + size])
        at += 4 + size
    return fields


def frames(inbox: bytearray) -> Iterator[tuple[bytes, int, bytes]]:
    """Take the whole frames off the front of `inbox`: (kind, request id, body). What is not whole yet stays."""
    while len(inbox) >= HEADER:
        end = HEADER + int.from_bytes(inbox[:4], "big")
        if len(inbox) < end:
            return
        kind, request, body = bytes(inbox[4:5]), int.from_bytes(inbox[5:HEADER], "big"), bytes(inbox[HEADER:end])
        del inbox[:end]
        yield kind, request, body
