"""Glyph, a small expression language."""

from glyph.errors import EvalError, GlyphError, ParseError
from glyph.evaluator import evaluate
from glyph.formatter import format_expr
from glyph.names import required
from glyph.parser import parse

__all__ = ["EvalError", "GlyphError", "ParseError", "evaluate", "format_expr", "parse", "required"]
