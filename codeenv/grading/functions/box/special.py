"""The special methods that are passed on from a stand-in to its object. Runs in both boxes."""

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
    "__fspath__", "__repr__", "__str__", "__length_hint__", "__missing__",
)  # fmt: skip
SPECIAL = (*ORDER, *ASKING, *OTHERS)
PREDICATES = ("startswith", "endswith", "isdisjoint", "issubset", "issuperset", "match", "fullmatch")
