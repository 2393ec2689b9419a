import re
import sys
from dataclasses import dataclass, field

STEP_LIMIT = 100_000
LOWEST, HIGHEST = -(2**63), 2**63 - 1
CODES = {"UNDERFLOW": 1, "TYPE": 2, "ZERO": 3, "OVERFLOW": 4, "UNKNOWN": 5, "RESERVED": 6, "RANGE": 7, "LIMIT": 8}
INTEGER = re.compile(r"-?[0-9]+")


@dataclass
class Token:
    text: str
    line: int

    def __str__(self) -> str:
        return self.text


@dataclass(eq=False)
class Block:
    items: list = field(default_factory=list)  # of Token and Block

    def __str__(self) -> str:
        # Not recursive, for blocks may be nested deeply.
        words, todo = [], [self]
        while todo:
            item = todo.pop()
            if isinstance(item, Block):
                words.append("[")
                todo.append("]")
                todo.extend(reversed(item.items))
            else:
                words.append(str(item))
        return " ".join(words)


class SyntaxFault(Exception):
    pass


class Fault(Exception):
    """A Bobbin error; `token` is filled in by the machine."""

    def __init__(self, kind: str, code: int | None = None) -> None:
        self.kind = kind
        self.code = CODES[kind] if code is None else code


class Limit(Exception):
    pass


def parse(source: str) -> Block:
    program = Block()
    open_blocks = [(program, 0)]
    for number, line in enumerate(source.split("\n"), 1):
        for text in line.partition("#")[0].replace("[", " [ ").replace("]", " ] ").split():
            if text == "[":
                block = Block()
                open_blocks[-1][0].items.append(block)
                open_blocks.append((block, number))
            elif text == "]":
                if len(open_blocks) == 1:
                    raise SyntaxFault(number)
                open_blocks.pop()
            else:
                open_blocks[-1][0].items.append(Token(text, number))
    if len(open_blocks) > 1:
        raise SyntaxFault(open_blocks[-1][1])
    return program


# Frames: the machine keeps its own stack of them, so that nesting is not bounded by Python's.


@dataclass
class Run:
    block: Block
    position: int = 0


@dataclass
class Times:
    left: int
    block: Block


@dataclass
class While:
    condition: Block
    body: Block
    token: Token
    testing: bool = False


@dataclass
class Catch:
    saved: list


class Machine:
    def __init__(self) -> None:
        self.stack: list = []
        self.frames: list = []
        self.names: dict = {}
        self.steps = 0
        self.words = {
            "+": self.arithmetic(lambda a, b: a + b),
            "-": self.arithmetic(lambda a, b: a - b),
            "*": self.arithmetic(lambda a, b: a * b),
            "/": self.arithmetic(quotient),
            "%": self.arithmetic(lambda a, b: a - quotient(a, b) * b),
            "=": self.arithmetic(lambda a, b: int(a == b)),
            "<": self.arithmetic(lambda a, b: int(a < b)),
            **{
                name: getattr(self, "do_" + name)
                for name in "dup drop swap over roll print call if times while catch throw".split()
            },
        }

    # -- running

    def run(self, program: Block) -> None:
        self.frames.append(Run(program))
        while self.frames:
            token = self.resume()
            if token is None:
                continue
            try:
                self.execute(token)
            except Fault as fault:
                self.unwind(fault, token)

    def resume(self) -> Token | Block | None:
        """The next thing to execute, if the innermost frame has one; else moves that frame on."""
        frame = self.frames[-1]
        match frame:
            case Run():
                if frame.position < len(frame.block.items):
                    frame.position += 1
                    return frame.block.items[frame.position - 1]
                self.frames.pop()
            case Times():
                if frame.left > 0:
                    frame.left -= 1
                    self.enter(frame.block)
                else:
                    self.frames.pop()
            case While():
                try:
                    self.resume_while(frame)
                except Fault as fault:
                    self.unwind(fault, frame.token)
            case Catch():
                self.frames.pop()
                self.stack.append(0)
        return None

    def resume_while(self, frame: While) -> None:
        if not frame.testing:
            frame.testing = True
            self.enter(frame.condition)
            return
        (value,) = self.operands(int)
        self.stack.pop()
        if value:
            frame.testing = False
            self.enter(frame.body)
        else:
            self.frames.pop()

    def unwind(self, fault: Fault, token: Token) -> None:
        while self.frames:
            frame = self.frames.pop()
            if isinstance(frame, Catch):
                self.stack = [*frame.saved, fault.code]
                return
        fault.token = token
        raise fault

    def step(self) -> None:
        if self.steps == STEP_LIMIT:
            self.steps = 0
            raise Fault("LIMIT")
        self.steps += 1

    def enter(self, block: Block) -> None:
        self.step()
        self.frames.append(Run(block))

    def execute(self, item: Token | Block) -> None:
        self.step()
        if isinstance(item, Block):
            self.stack.append(item)
        elif INTEGER.fullmatch(item.text):
            self.stack.append(in_range(int(item.text)))
        elif item.text == "while":
            self.do_while(item)
        elif item.text in self.words:
            self.words[item.text]()
        elif item.text[0] == ">":
            self.bind(item.text[1:])
        elif item.text[0] == "&":
            self.stack.append(self.look_up(item.text[1:]))
        else:
            value = self.look_up(item.text)
            if isinstance(value, Block):
                self.enter(value)
            else:
                self.stack.append(value)

    # -- words

    def operands(self, *types: type) -> list:
        """The topmost values, checked but not popped."""
        if len(self.stack) < len(types):
            raise Fault("UNDERFLOW")
        values = self.stack[len(self.stack) - len(types) :]
        if not all(map(isinstance, values, types)):
            raise Fault("TYPE")
        return values

    def take(self, *types: type) -> list:
        values = self.operands(*types)
        del self.stack[len(self.stack) - len(types) :]
        return values

    def arithmetic(self, function):
        def word() -> None:
            a, b = self.operands(int, int)
            self.stack[-2:] = [in_range(function(a, b))]

        return word

    def bind(self, name: str) -> None:
        if name in self.words:
            raise Fault("RESERVED")
        (self.names[name],) = self.take(object)

    def look_up(self, name: str):
        if name not in self.names:
            raise Fault("UNKNOWN")
        return self.names[name]

    def do_dup(self) -> None:
        self.stack.extend(self.operands(object))

    def do_drop(self) -> None:
        self.take(object)

    def do_swap(self) -> None:
        a, b = self.take(object, object)
        self.stack += [b, a]

    def do_over(self) -> None:
        self.stack.append(self.operands(object, object)[0])

    def do_roll(self) -> None:
        (depth,) = self.operands(int)
        if not 0 <= depth < len(self.stack) - 1:
            raise Fault("UNDERFLOW")
        self.stack.pop()
        self.stack.append(self.stack.pop(-1 - depth))

    def do_print(self) -> None:
        print(*self.take(object))

    def do_call(self) -> None:
        self.enter(*self.take(Block))

    def do_if(self) -> None:
        value, yes, no = self.take(int, Block, Block)
        self.enter(yes if value else no)

    def do_times(self) -> None:
        self.frames.append(Times(*self.take(int, Block)))

    def do_while(self, token: Token) -> None:
        self.frames.append(While(*self.take(Block, Block), token))

    def do_catch(self) -> None:
        (block,) = self.take(Block)
        self.frames.append(Catch(list(self.stack)))
        self.enter(block)

    def do_throw(self) -> None:
        (code,) = self.operands(int)
        if code < 100:
            raise Fault("RANGE")
        raise Fault("USER", code)


def quotient(a: int, b: int) -> int:
    if b == 0:
        raise Fault("ZERO")
    size = abs(a) // abs(b)
    return size if (a < 0) == (b < 0) else -size


def in_range(value: int) -> int:
    if not LOWEST <= value <= HIGHEST:
        raise Fault("OVERFLOW")
    return value


def main() -> None:
    try:
        program = parse(sys.stdin.read())
    except SyntaxFault as fault:
        print("SYNTAX line", fault)
        return
    machine = Machine()
    try:
        machine.run(program)
    except Fault as fault:
        if fault.kind == "LIMIT":
            print("ERROR LIMIT")
            print("STACK", *machine.stack)
            return
        code = [fault.code] if fault.kind == "USER" else []
        print("ERROR", fault.kind, *code, fault.token, "line", fault.token.line)
    except Limit:
        print("ERROR LIMIT")
    print("STACK", *machine.stack)


if __name__ == "__main__":
    main()
