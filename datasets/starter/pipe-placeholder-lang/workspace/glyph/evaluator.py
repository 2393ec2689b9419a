"""Evaluation of syntax trees."""

from glyph.errors import EvalError
from glyph.nodes import Binary, Call, ListOf, Literal, Name, Negate

_OPERATORS = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
}


def evaluate(node, env):
    """Value of the node; env maps names to values and to callables."""
    match node:
        case Literal(value):
            return value
        case Name(id):
            return _look_up(id, env)
        case ListOf(items):
            return [evaluate(item, env) for item in items]
        case Negate(operand):
            return -evaluate(operand, env)
        case Binary(op, left, right):
            a = evaluate(left, env)
            b = evaluate(right, env)
            return _OPERATORS[op](a, b)
        case Call(func, args):
            function = _look_up(func, env)
            if not callable(function):
                raise EvalError(f"{func} is not a function")
            return function(*[evaluate(arg, env) for arg in args])
    raise TypeError(f"not a node: {node!r}")


def _look_up(name, env):
    try:
        return env[name]
    except KeyError:
        raise EvalError(f"unknown name {name}") from None
