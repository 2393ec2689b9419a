"""The process that runs the solution, and does with it whatever the tests ask. Runs in the solution's box.

Nothing in here is trusted by anyone: the solution shares the process and may do to it what it likes.
"""

import os
import sys

from codeenv.grading.functions.box.codec import Shared
from codeenv.grading.functions.box.inspecting import plain_value
from codeenv.grading.functions.box.link import OTHERS, Conversation
from codeenv.grading.functions.box.names import PLAIN_BASES
from codeenv.grading.functions.box.peer import Peer


class Solution(Peer):
    """Serves every request on the objects that have crossed."""

    def operation(self, name):
        return OPERATIONS[name]

    def made_named(self, module, name):
        return getattr(imported(module), name)

    def made_module(self, name, *_):
        return imported(name)

    def made_method(self, number, name):
        return getattr(self.own(number), name)


def imported(name):
    __import__(name)
    return sys.modules[name]


def call(function, arguments, options):
    return function(*arguments, **dict(options))


def method(value, name, arguments, options):
    return getattr(value, name)(*arguments, **dict(options))


def special(value, name, arguments):
    return getattr(type(value), name)(value, *arguments)


def of_class(cls, what, arguments):
    """What a metaclass may offer."""
    if what == "item":
        return cls[arguments[0]]
    if what == "in":
        return arguments[0] in cls
    return {"len": len, "iter": iter}[what](cls)


def states(one, other, fields):
    """What two objects hold: the named fields, or else all that is public."""
    return state(one, fields), state(other, fields)


def state(value, fields):
    if fields is not None:
        return [getattr(value, name) for name in fields]
    found = dict(getattr(value, "__dict__", {}))
    for cls in type(value).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        for name in [slots] if isinstance(slots, str) else slots:
            if hasattr(value, name):
                found[name] = getattr(value, name)
    public = {name: item for name, item in found.items() if not name.startswith("_")}
    return public or found


def plain(value):
    base = next(kind for kind in PLAIN_BASES.values() if isinstance(value, kind))
    return plain_value(base, value)


def copied(value, deep):
    import copy

    return copy.deepcopy(value) if deep else copy.copy(value)


def import_one(name):
    return hasattr(imported(name), "__path__")


OPERATIONS = {
    "import": import_one,
    "module_get": lambda module, name: getattr(imported(module), name),
    "module_set": lambda module, name, value: setattr(imported(module), name, value),
    "module_delete": lambda module, name: delattr(imported(module), name),
    "module_dir": lambda module: list(dir(imported(module))),
    "call": call,
    "method": method,
    "special": special,
    "of_class": of_class,
    "get": getattr,
    "set": setattr,
    "delete": delattr,
    "dir": lambda value: list(dir(value)),
    "states": states,
    "plain": plain,
    "copy": copied,
}


def main(descriptor, workspace, epoch):
    sys.path.insert(0, workspace)
    sys.argv = [""]
    solution = Solution(descriptor, first=1, begins=OTHERS)
    solution.link.epoch = epoch
    # The tests' main thread is served by ours.
    conversation = solution.link.conversations[1] = Conversation(solution.link, 1, Shared(1))
    solution.link.start_pump()
    solution.attend(conversation)
    os._exit(0)
