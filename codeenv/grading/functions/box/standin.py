"""Stand-ins: what one side has in the place of the other's functions, classes, instances and exceptions. Runs in both
boxes.

The tests' side is strict. A stand-in is never asked whether it equals, contains or exceeds a value of the tests': an
object that says yes to everything would be right everywhere. Objects of the solution's are equal when they are of one
class and their fields are equal as plain values.
"""

import builtins

ATTRIBUTE = "_codeenv_ref"


class Ref:
    """Which object a stand-in stands for: a number of the other side's, and the epoch in which that number holds.
    `origin`: module and name by which it can be found again. `count`: how often it has crossed."""

    __slots__ = ("count", "epoch", "number", "origin", "peer", "taken")

    def __init__(self, peer, number, lasting=False):
        self.peer, self.number, self.epoch, self.origin = peer, number, peer.link.epoch, None
        self.count = 0 if lasting else 1
        self.taken = 0  # items, of an iterator

    def __del__(self):
        if self.count:
            self.peer.dropped.append((self.number, self.count, self.epoch))


def ref_of(value):
    """The Ref of a stand-in, else None."""
    if isinstance(value, RemoteType):
        return type.__getattribute__(value, "__dict__").get("_codeenv_class")
    try:
        ref = object.__getattribute__(value, ATTRIBUTE)
    except AttributeError:
        return None
    return ref if type(ref) is Ref else None


# --- special methods -------------------------------------------------------------------------------------------------

ORDER = ("__lt__", "__le__", "__gt__", "__ge__")
ARITHMETIC = tuple(
    f"__{prefix}{name}__"
    for name in (
        "add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "divmod", "pow", "lshift", "rshift", "and", "xor",
        "or",
    )
    for prefix in ("", "r", "i")
    if name != "divmod" or prefix != "i"
)  # fmt: skip
ASKING = (*ARITHMETIC, "__contains__")
OTHERS = (
    "__len__", "__bool__", "__iter__", "__next__", "__reversed__", "__getitem__", "__setitem__", "__delitem__",
    "__call__", "__enter__", "__exit__", "__neg__", "__pos__", "__abs__", "__invert__", "__int__", "__float__",
    "__complex__", "__index__", "__round__", "__trunc__", "__floor__", "__ceil__", "__format__", "__bytes__",
    "__fspath__", "__repr__", "__str__", "__length_hint__",
)  # fmt: skip
SPECIAL = (*ORDER, *ASKING, *OTHERS)
PREDICATES = ("startswith", "endswith", "isdisjoint", "issubset", "issuperset", "match", "fullmatch")


def forward(name):
    def special(self, *arguments):
        peer = ref_of(self).peer
        if peer.strict and arguments:
            guard(self, name, arguments)
        return peer.ask("special", self, name, arguments)

    special.__name__ = name
    return special


def guard(value, name, arguments):
    """Refuse what would let the solution decide about a value of the tests'."""
    if name in ORDER and any(ref_of(argument) is None for argument in arguments):
        raise ref_of(value).peer.fault(f"`{name}` of {described(value)} with a plain value")
    if name in ASKING and not known(type(value)) and any(ref_of(argument) is None for argument in arguments):
        raise ref_of(value).peer.fault(
            f"`{name}` of {described(value)}, a class that no test imports, with a plain value"
        )


def known(cls):
    """Whether the tests have imported it, or one that it derives from."""
    return any(base.__dict__.get("_codeenv_known") for base in cls.__mro__)


def described(value):
    return f"an instance of the solution's {type(value).__module__}.{type(value).__qualname__}"


FORWARDS = {name: forward(name) for name in SPECIAL}


# --- classes and instances -------------------------------------------------------------------------------------------


class RemoteType(type):
    """The class of the stand-ins of classes."""

    def __new__(mcs, name, bases, namespace, made=False):
        if not made:
            base = next(base for base in bases if isinstance(base, RemoteType))
            peer = base.__dict__["_codeenv_class"].peer
            raise peer.fault(
                f"a class of the tests that derives from the solution's {base.__module__}.{base.__qualname__}"
            )
        return super().__new__(mcs, name, bases, namespace)

    def __init__(cls, name, bases, namespace, made=False):
        super().__init__(name, bases, namespace)

    def __call__(cls, *arguments, **options):
        return ref_of(cls).peer.ask("call", cls, arguments, tuple(options.items()))

    def __getattr__(cls, name):
        return attribute(cls, name)

    def __setattr__(cls, name, value):
        if name.startswith("__"):
            type.__setattr__(cls, name, value)
        else:
            ref_of(cls).peer.ask("set", cls, name, value)

    def __delattr__(cls, name):
        ref_of(cls).peer.ask("delete", cls, name)

    def __dir__(cls):
        return ref_of(cls).peer.ask("dir", cls)

    def __repr__(cls):
        return f"<class '{cls.__module__}.{cls.__qualname__}'>"

    def __bool__(cls):
        return True

    def __len__(cls):
        return ref_of(cls).peer.ask("of_class", cls, "len", ())

    def __iter__(cls):
        return ref_of(cls).peer.ask("of_class", cls, "iter", ())

    def __contains__(cls, item):
        return ref_of(cls).peer.ask("of_class", cls, "in", (item,))

    def __getitem__(cls, item):
        return ref_of(cls).peer.ask("of_class", cls, "item", (item,))


class Remote:
    """What the stand-ins of instances have in common; their classes are made with what the other side's class has."""

    __slots__ = ()

    def __getattr__(self, name):
        return attribute(self, name)

    def __setattr__(self, name, value):
        if name.startswith("__") or name == ATTRIBUTE:
            object.__setattr__(self, name, value)
        else:
            ref_of(self).peer.ask("set", self, name, value)

    def __delattr__(self, name):
        ref_of(self).peer.ask("delete", self, name)

    def __dir__(self):
        return ref_of(self).peer.ask("dir", self)

    def __copy__(self):
        return ref_of(self).peer.ask("copy", self, False)

    def __deepcopy__(self, memo):
        return ref_of(self).peer.ask("copy", self, True)

    def __reduce_ex__(self, protocol):
        raise ref_of(self).peer.fault(f"pickling {described(self)}")


class Standing(Remote):
    """The root of those that are neither exceptions nor plain values of a kind."""

    def __eq__(self, other):
        return same(self, other)

    def __hash__(self):
        value = object.__getattribute__(self, "_codeenv_hash")
        if value is None:
            raise TypeError(f"unhashable type: {type(self).__qualname__!r}")
        return value


def same(one, other):
    peer = ref_of(one).peer
    if one is other:
        return True
    equality = type(one)._codeenv_equality
    if not peer.strict:
        return NotImplemented if equality == "identity" else peer.ask("special", one, "__eq__", (other,))
    if ref_of(other) is None:
        if equality != "own" or other is None:
            return NotImplemented
        raise peer.fault(f"`==` between {described(one)} and a plain value: its own `__eq__` would decide")
    if equality == "identity" or not (isinstance(other, type(one)) or isinstance(one, type(other))):
        return NotImplemented
    if equality == "fields":
        if type(one) is not type(other):
            return NotImplemented
        states = peer.ask("states", one, other, type(one)._codeenv_fields)
        return states[0] == states[1]
    answer = peer.ask("special", one, "__eq__", (other,))
    if answer is not True:
        return NotImplemented if answer is NotImplemented else False
    states = peer.ask("states", one, other, None)
    if states[0] != states[1] or not states[0]:
        raise peer.fault(f"`==` of {described(one)} says yes, but what the two hold does not bear it out")
    return True


class RemoteFunction:
    """Stands for anything that is there to be called."""

    __slots__ = ("__weakref__", ATTRIBUTE)

    def __call__(self, *arguments, **options):
        return self._codeenv_ref.peer.ask("call", self, arguments, tuple(options.items()))

    def __getattr__(self, name):
        return attribute(self, name)

    @property
    def __doc__(self):
        return attribute(self, "__doc__")

    def __repr__(self):
        return f"<the other side's function {self._codeenv_ref.origin or self._codeenv_ref.number}>"


class RemoteMethod:
    """A method of an instance or a class, bound; nothing is asked before it is called."""

    __slots__ = ("__name__", "__self__")

    def __init__(self, value, name):
        self.__self__, self.__name__ = value, name

    def __call__(self, *arguments, **options):
        peer = ref_of(self.__self__).peer
        return peer.ask("method", self.__self__, self.__name__, arguments, tuple(options.items()))

    def __getattr__(self, name):
        return attribute(ref_of(self.__self__).peer.ask("get", self.__self__, self.__name__), name)

    def __eq__(self, other):
        return type(other) is RemoteMethod and (self.__self__ is other.__self__ and self.__name__ == other.__name__)

    def __hash__(self):
        return hash((id(self.__self__), self.__name__))


DUNDERS = (
    "__name__",
    "__qualname__",
    "__doc__",
    "__module__",
    "__annotations__",
    "__defaults__",
    "__version__",
    "__all__",
)


def attribute(value, name):
    peer = ref_of(value).peer
    if peer.strict:
        # What frameworks look for: it would be the solution that answers.
        if (name.startswith("__") and name.endswith("__") and name not in DUNDERS) or "pytest" in name:
            raise AttributeError(name)
        if name in PREDICATES and isinstance(value, Remote) and not known(type(value)):
            raise peer.fault(f"`{name}` of {described(value)}, a class that no test imports")
    if isinstance(value, Remote) and name in type(value)._codeenv_methods:
        return RemoteMethod(value, name)
    return peer.ask("get", value, name)


# --- making them -----------------------------------------------------------------------------------------------------

PLAIN_BASES = {kind.__name__: kind for kind in (int, float, complex, str, bytes, tuple, frozenset, list, dict, set)}
KEPT_BY_PLAIN = (
    "__eq__",
    "__ne__",
    "__hash__",
    "__contains__",
    "__len__",
    "__iter__",
    "__getitem__",
    "__bool__",
    *ORDER,
)
"""What a stand-in that has a plain value answers from that value."""


def make_class(peer, number, name, module, qualname, doc, bases, specials, methods, equality, fields):
    """`bases`: classes, stand-ins or builtin."""
    builtin = [base for base in bases if not isinstance(base, RemoteType)]
    plain = any(issubclass(base, tuple(PLAIN_BASES.values())) for base in bases)
    failing = any(issubclass(base, BaseException) for base in bases)
    root = Remote if plain or failing else Standing
    if not any(issubclass(base, root) for base in bases):
        bases = (*(base for base in bases if base not in builtin), root, *builtin)
    namespace = {
        "__module__": module,
        "__qualname__": qualname,
        "__doc__": doc,
        "_codeenv_class": Ref(peer, number, lasting=True),
        "_codeenv_equality": equality,
        "_codeenv_methods": frozenset(methods),
        "_codeenv_fields": fields,
        "_codeenv_known": False,
    }
    for special in specials:
        if special in FORWARDS and not (plain and special in KEPT_BY_PLAIN) and not (failing and special == "__str__"):
            namespace[special] = FORWARDS[special]
    if failing:
        namespace["__str__"] = lambda self: self.__dict__.get("_codeenv_text", "")
    if fields is not None:
        namespace["__dataclass_fields__"] = {name: data_field(name) for name in fields}
    for some in (bases, (*bases[:1],), (root, *builtin)):
        try:
            return RemoteType(name, tuple(some), dict(namespace), made=True)
        except TypeError:  # an order of bases or a layout that cannot be had here
            continue
    return RemoteType(name, (root,), namespace, made=True)


def data_field(name):
    import dataclasses

    field = dataclasses.field()
    field.name, field._field_type = name, dataclasses._FIELD
    return field


def make_instance(cls, ref, hashed, plain):
    if plain is None:
        value = object.__new__(cls)
    else:
        base = PLAIN_BASES[plain[0]]
        if base in (list, set, dict):
            value = base.__new__(cls)
            getattr(base, "extend" if base is list else "update")(value, plain[1])
        else:
            value = base.__new__(cls, plain[1])
    object.__setattr__(value, ATTRIBUTE, ref)
    object.__setattr__(value, "_codeenv_hash", hashed)
    return value


def make_error(cls, ref, arguments, text):
    base = next(base for base in cls.__mro__ if base.__module__ == "builtins")
    try:
        value = base.__new__(cls, *arguments)
        base.__init__(value, *arguments)
    except Exception:
        value = BaseException.__new__(cls, *arguments)
    value.__dict__[ATTRIBUTE] = ref
    if cls is not base:
        value.__dict__["_codeenv_text"] = text
    return value


SAFE = {
    name: getattr(builtins, name)
    for name in dir(builtins)
    if not name.startswith("_") and (isinstance(getattr(builtins, name), type) or name in (
        "abs", "all", "any", "ascii", "bin", "callable", "chr", "divmod", "format", "hash", "hex", "id", "isinstance",
        "issubclass", "iter", "len", "max", "min", "next", "oct", "ord", "pow", "print", "repr", "round", "sorted",
        "sum"))
}  # fmt: skip
"""Builtins that cross by name: types, and functions without access to anything but their arguments."""
