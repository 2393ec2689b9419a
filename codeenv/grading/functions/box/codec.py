"""Values as bytes and back. Runs in both boxes, and trusts nothing that it reads: the decoder makes exact plain types
and nothing else, calls no code of the sender's, and what stands for an object is resolved by whoever holds the handles.

A message is one value. Containers that can change (list, dict, set, bytearray, deque, numpy arrays and their like) are
numbered when they first cross and from then on, until the outermost call of a conversation is over, stand on both
sides for the same object: each message brings the new contents of those that its sender changed. So what a function
does to its arguments is seen by the caller, two names for one list stay one list, and cycles cross.
"""

import struct
import sys

MESSAGE_LIMIT = 16 * 1024 * 1024  # bytes of one message
DEPTH_LIMIT = 100  # tuples in tuples; containers that can change: ten times as deep
U32, I64, F64 = struct.Struct("<I"), struct.Struct("<q"), struct.Struct("<d")
COMPLEX = struct.Struct("<dd")


class CannotCross(Exception):
    """A value that is neither plain nor may be held by a handle; or a message that is not one."""


class Shared:
    """The changeable containers that a conversation has in common. `first`: 0 or 1, so that the two sides never give
    the same number."""

    def __init__(self, first):
        self.next = first
        self.objects = {}  # number -> (kind, the container itself)
        self.numbers = {}  # id of the container -> number
        self.contents = {}  # number -> its contents as they last crossed

    def add(self, number, kind, value):
        self.objects[number] = (kind, value)
        self.numbers[id(value)] = number

    def clear(self):
        self.objects.clear()
        self.numbers.clear()
        self.contents.clear()


def numpy_of(value):
    numpy = sys.modules.get("numpy")
    return numpy if numpy is not None and type(value).__module__ == "numpy" else None


# --- encoding --------------------------------------------------------------------------------------------------------


class Encoder:
    """One message. `foreign(value)` gives what is to be said of a value that is not plain: ("M", number) for one of the
    receiver's own, ("H", a tuple) for one that the sender keeps."""

    def __init__(self, shared, foreign):
        self.shared, self.foreign = shared, foreign
        self.fresh = []  # numbers of containers that still have to be written, and how deep they lie
        self.level = 0  # how deep the container that is being written lies
        self.depth = 0  # of tuples, in it

    def message(self, value):
        """:raises CannotCross: nothing has crossed then, and nothing is shared that was not before."""
        shared = self.shared
        changed = []
        try:
            return self.whole(value, changed)
        except BaseException:
            for number, _ in self.fresh:
                del shared.numbers[id(shared.objects.pop(number)[1])]
            for number in changed:
                shared.contents.pop(number, None)
            raise

    def whole(self, value, changed):
        shared = self.shared
        root, definitions, headers = [], [], []
        known = list(shared.objects)
        self.put(value, root.append)
        for number in known:
            kind, container = shared.objects[number]
            contents = self.contents(kind, container)
            if shared.contents.get(number) != contents:
                changed.append(number)
                shared.contents[number] = contents
                headers.append(self.header(number, kind, container))
                definitions.append(contents)
        for number, depth in self.fresh:  # grows meanwhile
            kind, container = shared.objects[number]
            self.level = depth
            contents = shared.contents[number] = self.contents(kind, container)
            headers.append(self.header(number, kind, container))
            definitions.append(contents)
        # What names a class at its first mention must be read first: in the order in which it was written.
        data = b"".join([U32.pack(len(headers)), *headers, *root, *definitions])
        if len(data) > MESSAGE_LIMIT:
            raise CannotCross(f"more than {MESSAGE_LIMIT} bytes at once")
        return data

    def header(self, number, kind, container):
        out = [U32.pack(number) + kind]
        if kind in MADE_OF:
            self.put(MADE_OF[kind](container), out.append)
        return b"".join(out)

    def contents(self, kind, container):
        out = []
        WRITE[kind](self, container, out.append)
        return b"".join(out)

    def put(self, value, put):
        writer = PLAIN.get(type(value))
        if writer is not None:
            writer(self, value, put)
        elif type(value) in CHANGEABLE:
            self.changeable(CHANGEABLE[type(value)], value, put)
        else:
            self.unusual(value, put)

    def changeable(self, kind, value, put):
        number = self.shared.numbers.get(id(value))
        if number is None:
            number = self.shared.next
            self.shared.next += 2
            self.shared.add(number, kind, value)
            self.fresh.append((number, self.level + 1))
            if self.level > 10 * DEPTH_LIMIT:
                raise CannotCross(f"containers nested more than {10 * DEPTH_LIMIT} deep")
        put(b"@" + U32.pack(number))

    def items(self, values, put):
        """A sequence: numbers and texts alone go as one block."""
        count = len(values)
        if count >= 4:
            types = set(map(type, values))
            if len(types) == 1:
                only = types.pop()
                try:
                    if only is int:
                        put(b"q" + U32.pack(count) + struct.pack(f"<{count}q", *values))
                        return
                    if only is float:
                        put(b"d" + U32.pack(count) + struct.pack(f"<{count}d", *values))
                        return
                except struct.error:  # an int that is larger
                    pass
                if only is str:
                    text = "".join(values).encode("utf-8", "surrogatepass")
                    put(b"u" + U32.pack(count) + struct.pack(f"<{count}I", *map(len, values)))
                    put(U32.pack(len(text)) + text)
                    return
        put(b"*" + U32.pack(count))
        plain = PLAIN.get
        for value in values:
            writer = plain(type(value))
            if writer is not None:
                writer(self, value, put)
            else:
                self.put(value, put)

    def unusual(self, value, put):
        kind = type(value)
        name = f"{kind.__module__}.{kind.__qualname__}"
        if name in LIBRARY and kind is getattr(sys.modules.get(kind.__module__), kind.__name__, None):
            found = LIBRARY[name]
            if isinstance(found, bytes):
                self.changeable(found, value, put)
            else:
                found(self, value, put)
            return
        numpy = numpy_of(value)
        if numpy is not None and isinstance(value, numpy.generic):
            put(b"G")
            self.put(numpy_type(value.dtype), put)
            self.put(value.tobytes(), put)
            return
        tag, said = self.foreign(value)
        put(tag)
        self.put(said, put)


def numpy_type(dtype):
    if dtype.kind not in "biufcSUmM" or dtype.names is not None:
        raise CannotCross(f"a numpy array of {dtype}")
    return dtype.str


def write_int(_, value, put):
    if -0x8000000000000000 <= value <= 0x7FFFFFFFFFFFFFFF:
        put(b"i" + I64.pack(value))
    else:
        data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
        put(b"I" + U32.pack(len(data)) + data)


def write_text(_, value, put):
    data = value.encode("utf-8", "surrogatepass")
    put(b"s" + U32.pack(len(data)) + data)


def write_bytes(_, value, put):
    put(b"b" + U32.pack(len(value)) + value)


def write_range(encoder, value, put):
    put(b"r")
    for number in (value.start, value.stop, value.step):
        encoder.put(number, put)


def write_frozen(tag):
    def write(encoder, value, put):
        encoder.depth += 1
        if encoder.depth > DEPTH_LIMIT:
            raise CannotCross(f"tuples nested more than {DEPTH_LIMIT} deep")
        put(tag)
        encoder.items(tuple(value), put)
        encoder.depth -= 1

    return write


PLAIN = {
    type(None): lambda _, value, put: put(b"N"),
    bool: lambda _, value, put: put(b"T" if value else b"F"),
    type(...): lambda _, value, put: put(b"E"),
    type(NotImplemented): lambda _, value, put: put(b"O"),
    int: write_int,
    float: lambda _, value, put: put(b"f" + F64.pack(value)),
    complex: lambda _, value, put: put(b"c" + COMPLEX.pack(value.real, value.imag)),
    str: write_text,
    bytes: write_bytes,
    tuple: write_frozen(b"t"),
    frozenset: write_frozen(b"z"),
    range: write_range,
}


def write_fields(name, fields):
    """For a type of the library that its constructor makes of `fields(value)`."""

    def write(encoder, value, put):
        put(b"L")
        write_text(encoder, name, put)
        PLAIN[tuple](encoder, fields(value), put)

    return write


def clock(value):
    zone = value.tzinfo
    if zone is not None and type(zone).__module__ + "." + type(zone).__qualname__ not in ZONES:
        raise CannotCross(f"a time zone of the type {type(zone).__qualname__}")
    return (value.hour, value.minute, value.second, value.microsecond, value.tzinfo, value.fold)


def day(value):
    return (value.year, value.month, value.day)


ZONES = ("datetime.timezone", "zoneinfo.ZoneInfo")
FIELDS = {
    "decimal.Decimal": lambda value: (str(value),),
    "fractions.Fraction": lambda value: (value.numerator, value.denominator),
    "datetime.date": day,
    "datetime.time": clock,
    "datetime.datetime": lambda value: day(value) + clock(value),
    "datetime.timedelta": lambda value: (value.days, value.seconds, value.microseconds),
    "datetime.timezone": lambda value: value.__getinitargs__(),
    "zoneinfo.ZoneInfo": lambda value: (value.key,),
    "uuid.UUID": lambda value: (value.hex,),
}
LIBRARY = {name: write_fields(name, fields) for name, fields in FIELDS.items()}
LIBRARY.update({
    "collections.deque": b"Q",
    "collections.OrderedDict": b"o",
    "collections.Counter": b"C",
    "collections.defaultdict": b"e",
    "numpy.ndarray": b"A",
})  # fmt: skip
CHANGEABLE = {list: b"l", dict: b"m", set: b"x", bytearray: b"y"}


def write_pairs(encoder, value, put):
    encoder.items(list(value.keys()), put)
    encoder.items(list(value.values()), put)


def write_default(encoder, value, put):
    encoder.put(value.default_factory, put)
    write_pairs(encoder, value, put)


MADE_OF = {b"Q": lambda value: value.maxlen, b"A": lambda value: (numpy_type(value.dtype), value.shape)}
"""What an empty one must be made with."""
WRITE = {
    b"l": lambda encoder, value, put: encoder.items(value, put),
    b"x": lambda encoder, value, put: encoder.items(tuple(value), put),
    b"y": lambda encoder, value, put: encoder.put(bytes(value), put),
    b"m": write_pairs,
    b"o": write_pairs,
    b"C": write_pairs,
    b"e": write_default,
    b"Q": lambda encoder, value, put: encoder.items(list(value), put),
    b"A": lambda encoder, value, put: encoder.put(value.tobytes(), put),
}


# --- decoding --------------------------------------------------------------------------------------------------------


class Decoder:
    """One message. `foreign` has `own(number)` for one of ours and `made(fields)` for what the sender keeps."""

    def __init__(self, data, shared, foreign):
        self.data, self.at, self.end = data, 0, len(data)
        self.shared, self.foreign = shared, foreign
        self.depth = 0

    def message(self):
        """:raises CannotCross: it is no message."""
        shared = self.shared
        try:
            count = self.count()
            changed = []
            for _ in range(count):
                number, kind = self.number(), self.take(1)
                made_of = self.value() if kind in MADE_OF else None
                found = shared.objects.get(number)
                if found is None:
                    shared.add(number, kind, self.empty(kind, made_of))
                elif found[0] != kind or (kind in MADE_OF and MADE_OF[kind](found[1]) != made_of):
                    raise CannotCross("a container that changed its type or shape while it was shared")
                changed.append(number)
            value = self.value()
            for number in changed:
                kind, container = shared.objects[number]
                begin = self.at
                FILL[kind](self, container)
                shared.contents[number] = self.data[begin : self.at]
        except CannotCross:
            raise
        except Exception as error:  # whatever its nonsense has led to
            raise CannotCross(f"a malformed message: {type(error).__name__}: {error}"[:500]) from error
        if self.at != self.end:
            raise CannotCross("a malformed message: bytes left over")
        return value

    def take(self, size):
        at = self.at
        self.at = at + size
        if self.at > self.end:
            raise CannotCross("a malformed message: it is cut off")
        return self.data[at : self.at]

    def only(self, kind):
        """A value of exactly this type: a range in the place of a tuple would never end."""
        value = self.value()
        if type(value) is not kind:
            raise CannotCross(f"a malformed message: no {kind.__name__}")
        return value

    def number(self):
        return U32.unpack(self.take(4))[0]

    def count(self):
        count = self.number()
        if count > self.end - self.at:  # everything takes a byte at least
            raise CannotCross("a malformed message: a count that is too large")
        return count

    def value(self):
        tag = self.data[self.at : self.at + 1]
        self.at += 1
        return READ[tag](self)

    def items(self):
        tag, count = self.take(1), self.count()
        if tag == b"*":
            data, read = self.data, READ
            values = []
            for _ in range(count):
                at = self.at
                self.at = at + 1
                values.append(read[data[at : at + 1]](self))
            return values
        if tag == b"q" or tag == b"d":
            return list(struct.unpack(f"<{count}{tag.decode()}", self.take(8 * count)))
        if tag != b"u":
            raise CannotCross("a malformed message: no sequence")
        sizes = struct.unpack(f"<{count}I", self.take(4 * count))
        text = self.take(self.number()).decode("utf-8", "surrogatepass")
        values, at = [], 0
        for size in sizes:
            values.append(text[at : at + size])
            at += size
        return values

    def deeper(self, make):
        self.depth += 1
        if self.depth > DEPTH_LIMIT:
            raise CannotCross("a malformed message: nested too deep")
        value = make()
        self.depth -= 1
        return value

    def empty(self, kind, made_of):
        if kind == b"A":
            numpy = __import__("numpy")
            if type(made_of) is not tuple or type(made_of[0]) is not str or type(made_of[1]) is not tuple:
                raise CannotCross("a malformed message: no array")
            dtype, size = numpy.dtype(made_of[0]), 1
            numpy_type(dtype)
            for length in made_of[1]:
                size *= length
            if size * dtype.itemsize > self.end - self.at:
                raise CannotCross("a malformed message: an array that is too large")
            return numpy.empty(made_of[1], dtype)
        if kind == b"Q":
            if type(made_of) not in (int, type(None)):
                raise CannotCross("a malformed message: no deque")
            return EMPTY[kind]((), made_of)
        return EMPTY[kind]()

    def shared_one(self):
        return self.shared.objects[self.number()][1]

    def library(self):
        name = self.value()
        if type(name) is not str or name not in FIELDS:
            raise CannotCross("a malformed message: no such type")
        fields = self.deeper(lambda: self.only(tuple))
        module, _, attribute = name.rpartition(".")
        made = getattr(__import__(module), attribute)
        if attribute in ("time", "datetime"):
            return made(*fields[:-1], fold=fields[-1])
        return made(*fields)

    def scalar(self):
        numpy = __import__("numpy")
        dtype, data = numpy.dtype(self.only(str)), self.only(bytes)
        numpy_type(dtype)
        return numpy.frombuffer(data, dtype)[0]


def fill_list(decoder, container):
    container[:] = decoder.items()


def fill_set(decoder, container):
    items = decoder.items()
    container.clear()
    container.update(items)


def fill_bytes(decoder, container):
    container[:] = decoder.only(bytes)


def fill_pairs(decoder, container):
    keys, values = decoder.items(), decoder.items()
    if len(keys) != len(values):
        raise CannotCross("a malformed message: keys without values")
    container.clear()
    for key, value in zip(keys, values):  # noqa: B905 - runs on 3.9
        container[key] = value


def fill_default(decoder, container):
    container.default_factory = decoder.value()
    fill_pairs(decoder, container)


def fill_deque(decoder, container):
    items = decoder.items()
    container.clear()
    container.extend(items)


def fill_array(decoder, container):
    made = __import__("numpy").frombuffer(decoder.only(bytes), container.dtype).reshape(container.shape)
    if container.tobytes() != made.tobytes():  # else it may be one that cannot be written to
        container[...] = made


def library(module, name):
    return lambda *arguments: getattr(__import__(module), name)(*arguments)


EMPTY = {
    b"l": list,
    b"m": dict,
    b"x": set,
    b"y": bytearray,
    b"o": library("collections", "OrderedDict"),
    b"C": library("collections", "Counter"),
    b"e": library("collections", "defaultdict"),
    b"Q": library("collections", "deque"),
}
FILL = {
    b"l": fill_list,
    b"m": fill_pairs,
    b"x": fill_set,
    b"y": fill_bytes,
    b"o": fill_pairs,
    b"C": fill_pairs,
    b"e": fill_default,
    b"Q": fill_deque,
    b"A": fill_array,
}
READ = {
    b"N": lambda _: None,
    b"T": lambda _: True,
    b"F": lambda _: False,
    b"E": lambda _: ...,
    b"O": lambda _: NotImplemented,
    b"i": lambda decoder: I64.unpack(decoder.take(8))[0],
    b"I": lambda decoder: int.from_bytes(decoder.take(decoder.number()), "little", signed=True),
    b"f": lambda decoder: F64.unpack(decoder.take(8))[0],
    b"c": lambda decoder: complex(*COMPLEX.unpack(decoder.take(16))),
    b"s": lambda decoder: decoder.take(decoder.number()).decode("utf-8", "surrogatepass"),
    b"b": lambda decoder: decoder.take(decoder.number()),
    b"t": lambda decoder: tuple(decoder.deeper(decoder.items)),
    b"z": lambda decoder: frozenset(decoder.deeper(decoder.items)),
    b"r": lambda decoder: range(decoder.value(), decoder.value(), decoder.value()),
    b"@": Decoder.shared_one,
    b"L": Decoder.library,
    b"G": Decoder.scalar,
    b"M": lambda decoder: decoder.foreign.own(decoder.value()),
    b"H": lambda decoder: decoder.foreign.made(decoder.value()),
}
