"""Events and their text form: one JSON object a line.

    {"type":"receive","lot":"L1","sku":"pear","qty":5,"best_before":300}
    {"type":"ship","sku":"pear","picks":[["L1",2]]}
    {"type":"hold","id":"H1","sku":"pear","expires":160,"picks":[["L1",3],["L2",1]]}
    {"type":"release","id":"H1"}
    {"type":"fulfil","id":"H1","picks":[["L1",3]]}
"""

import json

_FIELDS = {
    "receive": ("lot", "sku", "qty", "best_before"),
    "ship": ("sku", "picks"),
    "hold": ("id", "sku", "expires", "picks"),
    "release": ("id",),
    "fulfil": ("id", "picks"),
}


def encode(event):
    """Line for an event, a dict with "type" and the fields of that type; order of fields and blanks are fixed."""
    fields = ("type", *_FIELDS[event["type"]])
    if set(event) != set(fields):
        raise ValueError(f"wrong fields in {event!r}")
    return json.dumps({field: event[field] for field in fields}, separators=(",", ":"))


def decode(line):
    event = json.loads(line)
    if event.get("type") not in _FIELDS or set(event) != {"type", *_FIELDS[event["type"]]}:
        raise ValueError(f"not an event: {line!r}")
    return event
