"""The `garbage` policy: what models get wrong, one kind a turn, in an order that depends on the seed alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random

from codeenv.policies.message import Message
from codeenv.text_protocol import OLD, write
from codeenv.tools import ToolCall

HUGE = 200_000  # characters of the huge command, more than one argument of a process may have
MANY = 20  # calls in one message


def battery(seed: str, tools: Sequence[str], *, text: bool) -> list[Message]:
    """Every kind of malformed message once. The two without any call never follow one another, which would end an
    episode; the blank one is a space, since verifiers itself refuses a message with nothing at all."""
    random = Random(seed)
    turns = _blocks(tools) if text else [Message(calls=tuple(calls)) for calls in _calls(tools)]
    random.shuffle(turns)
    third = len(turns) // 3
    turns.insert(2 * third, Message(" "))
    turns.insert(third, Message("I would start by looking at the files, then think about what to do."))
    return turns


def _calls(tools: Sequence[str]) -> list[list[ToolCall]]:
    tool = "bash" if "bash" in tools or not tools else tools[0]
    raw = {
        "cut": '{"command": "ls -',
        "list": '["ls"]',
        "null": "null",
        "string": '"ls"',
        "number": "7",
        "nothing": "",
        "keys": '{"cmd": "ls", "why": null}',
        "types": '{"command": 7, "path": ["a"], "content": {}}',
        "deep": "[" * 2000,
        "surrogate": '{"command": "echo \\ud800"}',
        "nul": '{"command": "echo \\u0000"}',
        "huge": json.dumps({"command": "echo " + "x" * HUGE}),
    }
    turns = [[ToolCall(tool, arguments)] for arguments in raw.values()]
    turns += [
        [ToolCall("bsh", '{"command": "ls"}')],
        [ToolCall("", '{"command": "ls"}')],
        [ToolCall(tool, '{"command": "true"}', "call_same"), ToolCall(tool, '{"command": "false"}', "call_same")],
        [ToolCall(tool, json.dumps({"command": f"echo {number}"})) for number in range(MANY)],
    ]
    if "read_file" in tools:
        turns.append([ToolCall("read_file", '{"path": "../../../../no/such/file"}')])
    if "edit_file" in tools:
        turns.append([ToolCall("edit_file", '{"path": ".", "old_text": "", "new_text": "x"}')])
    return turns


def _blocks(tools: Sequence[str]) -> list[Message]:
    tool = "bash" if "bash" in tools or not tools else tools[0]
    bodies = [
        f"```{tool}\nls -la",  # never closed
        "```bsh\nls\n```",
        "```\nls\n```",
        f"```{tool}\n```",
        f"```{tool} \x00\necho \x00\n```",
        "\n".join(f"```{tool}\necho {number}\n```" for number in range(MANY)),
        write(
            tool, {"command": "echo " + "x" * HUGE, "path": "a", "content": "x" * HUGE, "old_text": "", "new_text": ""}
        ),
        f"~~~{tool}\nls\n~~~",
        f"````{tool}\n```{tool}\nls\n```\n````",
        '{"name": "bash", "arguments": {"command": "ls"}}',
    ]
    if "read_file" in tools:
        bodies.append("```read_file\n```")
    if "edit_file" in tools:
        bodies.append(f"```edit_file a.py\n{OLD}\nold\n```")
    # Those that hold no call at all get one more block behind them: two in a row would end the episode.
    inert = (1, 2, 7, 9)
    return [Message(f"{body}\n```{tool}\ntrue\n```" if n in inert else body) for n, body in enumerate(bodies)]


def malformed_answer(seed: str) -> Message:
    """One of the kinds of answers that hold no code, or none that can be run."""
    kinds = (
        "I would start by looking at the files.",
        "```python\n```",
        "```python\ndef (:\n",
        "```bash\npython3 solution.py\n```",
        "```\n```\n```",
        f"<think>\n```python\nprint({seed!r})\n```",
        "```python\n" + "(" * HUGE + "\n```",
        "```python\nwhile True:\n    pass\n```",
        "```python\nimport os\nos._exit(0)\n```",
        "```python\nprint('\0\ud800')\n```",
    )
    return Message(Random(seed).choice(kinds))
