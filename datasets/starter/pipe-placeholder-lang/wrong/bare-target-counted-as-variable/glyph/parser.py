"""Tokens to the syntax tree."""

from glyph.errors import ParseError
from glyph.lexer import tokenize
from glyph.nodes import Binary, Call, Hole, ListOf, Literal, Name, Negate, Pipe, has_hole


def parse(source):
    return _Parser(tokenize(source)).parse_all()


class _Parser:
    def __init__(self, tokens):
        self.tokens = tokens
        self.index = 0
        self.targets = 0  # how many pipe targets we are in

    @property
    def token(self):
        return self.tokens[self.index]

    def accept(self, *texts):
        """Consume and return the next token if it is one of these operators."""
        token = self.token
        if token.kind == "op" and token.text in texts:
            self.index += 1
            return token
        return None

    def expect(self, text):
        if not self.accept(text):
            raise ParseError(f"expected {text!r}", self.token.pos)

    def parse_all(self):
        node = self.expression()
        if self.token.kind != "end":
            raise ParseError(f"unexpected {self.token.text!r}", self.token.pos)
        return node

    def expression(self):
        node = self.sum()
        while self.accept("|>"):
            node = Pipe(node, self.target())
        return node

    def target(self):
        pos = self.token.pos
        self.targets += 1
        node = self.sum()
        self.targets -= 1
        if not (isinstance(node, (Name, Call)) or has_hole(node)):
            raise ParseError("a value cannot be piped into this", pos)
        return node

    def sum(self):
        node = self.product()
        while op := self.accept("+", "-"):
            node = Binary(op.text, node, self.product())
        return node

    def product(self):
        node = self.unary()
        while op := self.accept("*"):
            node = Binary(op.text, node, self.unary())
        return node

    def unary(self):
        if self.accept("-"):
            return Negate(self.unary())
        return self.atom()

    def atom(self):
        token = self.token
        if self.accept("("):
            node = self.expression()
            self.expect(")")
            return node
        if self.accept("["):
            return ListOf(self.items("]"))
        if token.kind == "end" or token.kind == "op":
            raise ParseError("expected an expression", token.pos)
        self.index += 1
        if token.kind == "number":
            return Literal(int(token.text))
        if token.kind == "string":
            return Literal(token.text[1:-1])
        if token.text == "_":
            return self.hole(token)
        if self.accept("("):
            return Call(token.text, self.items(")"))
        return Name(token.text)

    def hole(self, token):
        if self.accept("("):
            raise ParseError("the placeholder cannot be called", token.pos)
        if not self.targets:
            raise ParseError("placeholder outside of a pipe's target", token.pos)
        return Hole()

    def items(self, closer):
        """The rest of a comma-separated list up to the closer."""
        if self.accept(closer):
            return ()
        items = [self.expression()]
        while self.accept(","):
            items.append(self.expression())
        self.expect(closer)
        return tuple(items)
