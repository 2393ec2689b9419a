"""What an expression needs from its environment."""

from glyph.nodes import Binary, Call, Hole, ListOf, Literal, Name, Negate, Pipe


def required(node):
    """Return two sets of names: the variables and the functions that the expression uses."""
    variables, functions = set(), set()
    _collect(node, variables, functions)
    return variables, functions


def _collect(node, variables, functions):
    match node:
        case Literal() | Hole():
            children = ()
        case Name(id):
            variables.add(id)
            children = ()
        case ListOf(items):
            children = items
        case Negate(operand):
            children = (operand,)
        case Binary(_, left, right):
            children = (left, right)
        case Call(func, args):
            functions.add(func)
            children = args
        case Pipe(left, Name(id)):
            functions.add(id)
            children = (left,)
        case Pipe(left, target):
            children = (left, target)
        case _:
            raise TypeError(f"not a node: {node!r}")
    for child in children:
        _collect(child, variables, functions)
