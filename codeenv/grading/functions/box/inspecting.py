"""What one side finds out about its own objects before it tells of them. Runs in both boxes."""

TEXT_LIMIT = 100_000


def weakref(value):
    import _weakref

    try:
        return _weakref.ref(value)
    except TypeError:  # of a plain value's kind: a new one each time
        return lambda: None


IMMUTABLE = (type(None), bool, int, float, complex, str, bytes, range)


def fixed_fields(value):
    """What an instance of a frozen dataclass has in its fields, when nothing of it can change either."""
    cls = type(value)
    parameters = getattr(cls, "__dataclass_params__", None)
    if parameters is None or not parameters.frozen or "__dataclass_params__" not in cls.__dict__ or not generated(cls):
        return None
    if cls.__getattribute__ is not object.__getattribute__:
        return None
    values = {name: getattr(value, name, MISSING) for name in cls.__dataclass_fields__}
    return ("fields", values) if all(map(fixed, values.values())) else None


MISSING = []  # of a type that can change: nothing is fixed then


def fixed(value):
    if type(value) in IMMUTABLE:
        return True
    if type(value) in (tuple, frozenset):
        return all(map(fixed, value))
    return fixed_fields(value) is not None


def static(cls, name):
    for base in cls.__mro__:
        if name in base.__dict__:
            return base.__dict__[name]
    return None


def generated(cls):
    """Whether its `__eq__` is the one that `dataclass` writes."""
    owner = next(base for base in cls.__mro__ if "__eq__" in base.__dict__)
    code = getattr(owner.__dict__["__eq__"], "__code__", None) or getattr(
        getattr(owner.__dict__["__eq__"], "__wrapped__", None), "__code__", None
    )
    return "__dataclass_params__" in owner.__dict__ and code is not None and code.co_filename == "<string>"


def plain_value(base, value):
    if base in (int, float, complex):
        return base.__pos__(value)
    if base is str:
        return str.__str__(value)
    if base is bytes:
        return b"".join([value])
    if base is dict:
        return dict(dict.items(value))
    return base(base.__iter__(value))


def said(how, value):
    try:
        text = how(value)
        return text[:TEXT_LIMIT] if type(text) is str else "?"
    except Exception:
        return f"<{type(value).__name__} that cannot be shown>"
