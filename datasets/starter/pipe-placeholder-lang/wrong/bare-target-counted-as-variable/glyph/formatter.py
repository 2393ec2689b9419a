"""Syntax trees back to source, with as few parentheses as possible."""

from glyph.nodes import Binary, Call, Hole, ListOf, Literal, Name, Negate, Pipe

_PIPE, _SUM, _PRODUCT, _UNARY, _ATOM = range(5)


def format_expr(node):
    return _format(node, _PIPE)


def _format(node, least):
    """Source of the node; in parentheses if it binds weaker than `least`."""
    level, text = _write(node)
    return f"({text})" if level < least else text


def _write(node):
    match node:
        case Literal(value):
            return _ATOM, f"'{value}'" if isinstance(value, str) else str(value)
        case Name(id):
            return _ATOM, id
        case ListOf(items):
            return _ATOM, f"[{_join(items)}]"
        case Negate(operand):
            return _UNARY, "-" + _format(operand, _UNARY)
        case Binary("*", left, right):
            return _PRODUCT, f"{_format(left, _PRODUCT)} * {_format(right, _UNARY)}"
        case Binary(op, left, right):
            return _SUM, f"{_format(left, _SUM)} {op} {_format(right, _PRODUCT)}"
        case Call(func, args):
            return _ATOM, f"{func}({_join(args)})"
        case Hole():
            return _ATOM, "_"
        case Pipe(left, target):
            return _PIPE, f"{_format(left, _PIPE)} |> {_format(target, _SUM)}"
    raise TypeError(f"not a node: {node!r}")


def _join(nodes):
    return ", ".join(format_expr(node) for node in nodes)
