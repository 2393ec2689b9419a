class GlyphError(Exception):
    """Base of all errors of the language."""


class ParseError(GlyphError):
    def __init__(self, message, pos):
        super().__init__(f"{message} at {pos}")
        self.pos = pos


class EvalError(GlyphError):
    pass
