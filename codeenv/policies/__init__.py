"""Policies without a model, for tests, load and demonstrations: what a policy does, written down beforehand.

`plan` and `messages` say what a policy does with a task, as pure functions; `serve` lets it answer over HTTP like a
model. The policies:

- `oracle`: works its way to the reference solution (looks, edits, runs the tests, submits);
- `wrong`: the same with one of the task's wrong solutions, a different one each time; `wrong:NAME`: always that one;
- `noop`: submits at once;
- `garbage`: a seeded battery of malformed calls, then submits;
- `script`: messages from a file, see `Script`.
"""

from __future__ import annotations

from codeenv.policies.plans import POLICIES, Message, PolicyError, messages, plan
from codeenv.policies.script import Script
from codeenv.policies.server import PolicyServer, serve, serve_in_thread

__all__ = [
    "POLICIES",
    "Message",
    "PolicyError",
    "PolicyServer",
    "Script",
    "messages",
    "plan",
    "serve",
    "serve_in_thread",
]
