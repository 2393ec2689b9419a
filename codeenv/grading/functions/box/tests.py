"""The tests' side: the solution's modules as stand-ins, and what the solution may do with objects of the tests'. Runs
in the tests' box, where no code of the solution's ever is."""

import sys
import types

from codeenv.grading.functions.box.codec import CannotCross
from codeenv.grading.functions.box.peer import FUNCTIONS, UNRELAYED, Fault, Peer
from codeenv.grading.functions.box.special import SPECIAL
from codeenv.grading.functions.box.standin import DUNDERS, RemoteFunction, RemoteType, ref_of

CLOSED = (*FUNCTIONS, *UNRELAYED, types.ModuleType, types.GeneratorType, type)
"""Of these the solution may use no attribute: they lead to the tests' own code and data."""
TAKEN_LIMIT = 100_000


class Tests(Peer):
    """Serves little: calls, public attributes and operators of what the tests themselves have handed over."""

    strict = True
    __test__ = False  # pytest collects classes of this name

    def __init__(self, descriptor, names, test_modules):
        super().__init__(descriptor, first=0, begins=1)
        self.names = names  # of the solution's top-level modules
        self.test_modules = test_modules  # names of modules whose classes are the tests' own; grows
        self.asked = {}  # class name -> what its objects may be asked about a value of the tests', `*` for all
        self.faults = []  # what the relay could not do since somebody last looked
        self.reason = ""

    def told(self, body):
        self.reason = body.decode("utf-8", "replace")

    def fault(self, text):
        self.faults.append(text)
        return Fault(f"not relayed: {text}")

    def lost(self):
        text = self.reason or "the solution's process is gone"
        self.faults.append(text)
        return Fault(text)

    def keep(self, value):
        self.link.start_pump()  # the solution may use it from a thread of its own
        return super().keep(value)

    def ask(self, *request):
        if request[0] == "special" and request[2] == "__next__":
            ref = ref_of(request[1])
            ref.taken += 1
            if ref.taken > TAKEN_LIMIT:
                raise self.fault(f"more than {TAKEN_LIMIT} items of one iterator")
        return super().ask(*request)

    def describe(self, value):
        if isinstance(value, types.ModuleType) and type(value) is not RemoteModule:
            raise CannotCross(f"a module ({value.__name__})")
        return super().describe(value)

    # --- what the solution may ask for -----------------------------------------------------------------------------

    def operation(self, name):
        found = {"call": call, "method": method, "special": special, "get": get, "set": self.set_attribute}.get(name)
        if found is None:
            raise CannotCross(f"the request {name!r}")
        return found

    def set_attribute(self, value, name, new):
        own = type(value).__module__ in self.test_modules
        if name.startswith("_") or not own or isinstance(value, CLOSED) or hasattr(type(value), name) or callable(new):
            raise AttributeError(f"the solution may not set {name!r} of {type(value).__name__!r} object")
        setattr(value, name, new)

    # --- modules -----------------------------------------------------------------------------------------------------

    def made_module(self, name, package):
        if type(name) is not str or name.partition(".")[0] not in self.names:
            raise CannotCross(f"the module {name}")
        return self.module(name, package is True)

    def module(self, name, package):
        found = sys.modules.get(name)
        if type(found) is RemoteModule:
            return found
        module = RemoteModule(name)
        module.__peer__ = self
        if package:
            module.__path__ = []
        return module

    # What importlib asks of a finder and a loader.

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in self.names:
            return None
        try:
            package = self.ask("import", name)
        except (SystemExit, KeyboardInterrupt, GeneratorExit) as error:
            raise ImportError(f"{type(error).__name__} at the import of the solution's {name}") from error
        from importlib.machinery import ModuleSpec

        return ModuleSpec(name, self, is_package=package is True)

    def create_module(self, spec):
        return self.module(spec.name, spec.submodule_search_locations is not None)

    def exec_module(self, module):
        pass


class RemoteModule(types.ModuleType):
    """A module of the solution's. Nothing of it is kept here: each use asks, as the module may change."""

    def __getattr__(self, name):
        if (name.startswith("__") and name not in DUNDERS) or "pytest" in name:
            raise AttributeError(name)
        value = self.__peer__.ask("module_get", self.__name__, name)
        if isinstance(value, (RemoteType, RemoteFunction)):
            ref = ref_of(value)
            if ref.origin is None:
                ref.origin = (self.__name__, name)
            if isinstance(value, RemoteType) and name.lstrip("_")[:1].isupper():
                # A function that has become a class keeps the name of a function: that does not make it trusted.
                type.__setattr__(value, "_codeenv_known", True)
        return value

    def __setattr__(self, name, value):
        if name.startswith("__"):
            super().__setattr__(name, value)
        elif not isinstance(value, RemoteModule):  # a submodule: the solution's package knows it by itself
            self.__peer__.ask("module_set", self.__name__, name, value)

    def __delattr__(self, name):
        self.__peer__.ask("module_delete", self.__name__, name)

    def __dir__(self):
        return self.__peer__.ask("module_dir", self.__name__)


def call(function, arguments, options):
    return function(*arguments, **dict(options))


def get(value, name):
    if type(value).__module__ in ("functools", "operator", "weakref", "_weakref"):
        raise AttributeError(f"the solution may not use {name!r}: it may lead to what the tests know")
    mocked = type(value).__module__ == "unittest.mock" and name in dir(type(value))
    if type(name) is not str or name.startswith("_") or isinstance(value, CLOSED) or mocked:
        raise AttributeError(f"the solution may not use {name!r} of {type(value).__name__!r} object")
    return getattr(value, name)


def method(value, name, arguments, options):
    return get(value, name)(*arguments, **dict(options))


def special(value, name, arguments):
    if name not in SPECIAL and name != "__eq__":
        raise CannotCross(f"the request {name!r}")
    return getattr(type(value), name)(value, *arguments)
