"""Finding values by dotted paths."""


class MissingError(KeyError):
    """There is nothing at this path."""


def find(tree: dict, path: str) -> object:
    node = tree
    for key in path.split("."):
        if not isinstance(node, dict) or key not in node:
            raise MissingError(path)
        node = node[key]
    return node
