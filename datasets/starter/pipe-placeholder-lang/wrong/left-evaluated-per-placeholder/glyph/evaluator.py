"""Evaluation of syntax trees."""

from glyph.errors import EvalError
from glyph.nodes import Binary, Call, Hole, ListOf, Literal, Name, Negate, Pipe, has_hole

_OPERATORS = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
}


def evaluate(node, env):
    """Value of the node; env maps names to values and to callables."""
    return _evaluate(node, env, None)


def _evaluate(node, env, piped):
    """`piped` is the value that placeholders stand for."""
    match node:
        case Literal(value):
            return value
        case Name(id):
            return _look_up(id, env)
        case Hole():
            return piped()
        case ListOf(items):
            return [_evaluate(item, env, piped) for item in items]
        case Negate(operand):
            return -_evaluate(operand, env, piped)
        case Binary(op, left, right):
            a = _evaluate(left, env, piped)
            b = _evaluate(right, env, piped)
            return _OPERATORS[op](a, b)
        case Call(func, args):
            return _call(func, args, env, piped)
        case Pipe(left, target):
            if has_hole(target):
                return _evaluate(target, env, lambda: _evaluate(left, env, piped))
            value = _evaluate(left, env, piped)
            if isinstance(target, Name):
                return _call(target.id, (), env, value, value)
            return _call(target.func, target.args, env, value, value)
    raise TypeError(f"not a node: {node!r}")


def _call(func, args, env, piped, *first):
    function = _look_up(func, env)
    if not callable(function):
        raise EvalError(f"{func} is not a function")
    return function(*first, *[_evaluate(arg, env, piped) for arg in args])


def _look_up(name, env):
    try:
        return env[name]
    except KeyError:
        raise EvalError(f"unknown name {name}") from None
