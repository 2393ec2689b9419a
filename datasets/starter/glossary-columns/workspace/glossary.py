def glossary(pairs, width, gutter=2):
    """Lay out (label, text) pairs in two columns; return the lines."""
    raise NotImplementedError
