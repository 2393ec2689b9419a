"""Stand-ins: what one side has in the place of the other's functions, classes, instances and exceptions. Runs in both
boxes.

The tests' side is strict. A stand-in is never asked whether it equals, contains or exceeds a value of the tests': an
object that says yes to everything would be right everywhere. Objects of the solution's are equal when they are of one
class and their fields are equal as plain values.
"""

from codeenv.grading.functions.box.names import PLAIN_BASES
from codeenv.grading.functions.box.special import ASKING, ORDER, PREDICATES, SPECIAL

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


def forward(name):
    def special(self, /, *arguments, **options):
        peer = ref_of(self).peer
        if name == "__call__":
            return peer.ask("call", self, arguments, tuple(options.items()))
        if name == "__exit__":
            arguments = (*arguments[:2], None)  # a traceback is its side's own
        if peer.strict and arguments:
            guard(self, name, arguments)
        return peer.ask("special", self, name, arguments)

    special.__name__ = name
    return special


def guard(value, name, arguments):
    """Refuse what would let the solution decide about a value of the tests'."""
    if name in ORDER and any(ref_of(argument) is None for argument in arguments):
        raise ref_of(value).peer.fault(f"`{name}` of {described(value)} with a plain value")
    if name in ASKING and not trusted(value, name) and any(ref_of(argument) is None for argument in arguments):
        raise ref_of(value).peer.fault(
            f"`{name}` of {described(value)} with a plain value: no test has made it, or its class is not given that"
        )


def trusted(value, name):
    """Whether it may answer `name` for itself on a value of the tests': a test made it, of a class that it imports and
    that has such a thing in the task. What a function has brought back could be anything, also where a number or a text
    was due."""
    origin = ref_of(type(value)).origin  # by which name it was imported: what the class calls itself is its own affair
    asked = ref_of(value).peer.asked.get(origin[1], ()) if origin else ()
    return getattr(value, "__dict__", {}).get("_codeenv_made") is True and (name in asked or "*" in asked)


def described(value):
    return f"an instance of the solution's {type(value).__module__}.{type(value).__qualname__}"


FORWARDS = {name: forward(name) for name in SPECIAL}


# --- classes and instances -------------------------------------------------------------------------------------------


def made(cls, value):
    """`value`, which a test got from a class that it knows; marked when it is one of it that had not crossed before."""
    if type(value) is cls and cls.__dict__["_codeenv_known"] and ref_of(value).count == 1:
        object.__setattr__(value, "_codeenv_made", True)
    return value


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

    def __call__(cls, /, *arguments, **options):
        return made(cls, ref_of(cls).peer.ask("call", cls, arguments, tuple(options.items())))

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
        states = object.__getattribute__(one, "_codeenv_values"), object.__getattribute__(other, "_codeenv_values")
        if states[0] is None or states[1] is None:
            states = peer.ask("states", one, other, type(one)._codeenv_compared)
        else:
            compared = type(one)._codeenv_compared
            states = [[values[name] for name in compared] for values in states]
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

    def __call__(self, /, *arguments, **options):
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

    def __call__(self, /, *arguments, **options):
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
        if name in PREDICATES and isinstance(value, Remote) and not trusted(value, name):
            raise peer.fault(f"`{name}` of {described(value)}: no test has made it, or its class is not given that")
    if isinstance(value, Remote):
        values = value.__dict__.get("_codeenv_values")
        if values is not None and name in values:
            return values[name]
        if name in type(value)._codeenv_methods:
            return RemoteMethod(value, name)
    return peer.ask("get", value, name)


# --- making them -----------------------------------------------------------------------------------------------------

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


CHANGEABLE = (list, dict, set)
"""Stand-ins of what derives from these hold nothing: everything is asked for, as it may change."""
DECIDED_BY_CONTENTS = ("__eq__", "__ne__", "__contains__", *ORDER)


def by_contents(kind, name):
    def special(self, other):
        peer = ref_of(self).peer
        if isinstance(other, kind) and ref_of(other) is not None:
            other = peer.ask("plain", other)
        return getattr(kind, name, NotImplemented)(peer.ask("plain", self), other)

    return special


def make_class(peer, number, name, module, qualname, doc, bases, specials, methods, equality, fields, compared):
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
        "_codeenv_compared": compared,
        "_codeenv_known": False,
    }
    changeable = [kind for kind in CHANGEABLE if any(issubclass(base, kind) for base in bases)]
    if changeable:
        for method in dir(changeable[0]):
            if not method.startswith("_"):
                namespace[method] = property(lambda self, method=method: RemoteMethod(self, method))
    kept = KEPT_BY_PLAIN if plain and not changeable else ("__str__",) if failing else ()
    namespace.update(
        (special, FORWARDS[special]) for special in specials if special in FORWARDS and special not in kept
    )
    if changeable and peer.strict:
        namespace.update((special, by_contents(changeable[0], special)) for special in DECIDED_BY_CONTENTS)
    if failing:
        namespace["__str__"] = lambda self: self.__dict__.get("_codeenv_text", "")
    if compared is not None:
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
    """`plain`: a builtin type's name and the value that the object is by that type; or "fields" and what an object that
    cannot change has in its fields."""
    values = None
    if plain is not None and plain[0] == "fields":
        values, plain = plain[1], None
        if type(values) is not dict:
            raise TypeError("no fields")
    if plain is None:
        value = object.__new__(cls)
    else:
        base = PLAIN_BASES[plain[0]]
        if base not in CHANGEABLE and type(plain[1]) is not base:
            raise TypeError(f"no {base.__name__}")  # a range, say, that would become a tuple without end
        value = base.__new__(cls) if base in CHANGEABLE else base.__new__(cls, plain[1])
    object.__setattr__(value, ATTRIBUTE, ref)
    object.__setattr__(value, "_codeenv_hash", hashed)
    object.__setattr__(value, "_codeenv_values", values)
    return value


def make_error(cls, ref, arguments, text, extra):
    base = next(base for base in cls.__mro__ if base.__module__ == "builtins")
    try:
        value = base.__new__(cls, *arguments)
        base.__init__(value, *arguments)
    except Exception:
        value = BaseException.__new__(cls, *arguments)
    value.__dict__[ATTRIBUTE] = ref
    if isinstance(cls, RemoteType):
        value.__dict__["_codeenv_text"] = text
    else:
        value.__dict__.update((name, held) for name, held in extra if name[:1] not in ("", "_"))
    return value
