"""Requests between the two sides, and the objects that each keeps for the other. Runs in both boxes.

What is not a plain value crosses as a handle: its side keeps it under a number, the other has a stand-in whose every
use is a request. What the other side may ask for is the affair of `Solution` (everything) and `Tests` (little).
"""

import _thread
import types

from codeenv.grading.functions.box import standin
from codeenv.grading.functions.box.codec import CannotCross, Decoder, Encoder, Shared
from codeenv.grading.functions.box.inspecting import fixed_fields, generated, plain_value, said, static, weakref
from codeenv.grading.functions.box.link import Conversation, Link, Ticket
from codeenv.grading.functions.box.names import PLAIN_BASES, SAFE, failure, failure_named
from codeenv.grading.functions.box.special import SPECIAL
from codeenv.grading.functions.box.standin import CHANGEABLE, Ref, RemoteMethod, RemoteType, ref_of

FUNCTIONS = (
    types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.MethodWrapperType,
    types.WrapperDescriptorType, types.MethodDescriptorType,
)  # fmt: skip
UNRELAYED = (types.CoroutineType, types.AsyncGeneratorType, types.FrameType, types.CodeType, types.TracebackType)
CAUSES = 5  # exceptions in a chain of causes that cross
DOC_LIMIT = 4000


class Fault(BaseException):
    """What the relay cannot do, or what the solution's process did instead of answering. No test may take it for an
    error of the solution's, so it is no Exception."""

    __module__ = "builtins"  # as it is shown


def typed(what, *pairs):
    """The first value, once each is exactly of its type: a range in the place of a tuple would never end."""
    for value, kind in pairs:
        if type(value) is not kind:
            raise CannotCross(f"a malformed message: {what}")
    return pairs[0][0]


class Peer:
    strict = False

    def __init__(self, descriptor, first, begins):
        self.link = Link(descriptor, self.begun, self.told)
        self.first = first
        self.next_conversation = begins
        self.kept = {}  # number -> [object, how often it has crossed]
        self.numbers = {}  # id -> number
        self.next_number = 1
        self.classes = {}  # (epoch, number) -> our stand-in of a class
        self.standins = {}  # (epoch, number) -> weak reference to a stand-in of anything else
        self.told_of = set()  # numbers of classes that the other side knows
        self.dropped = []
        self.local = _thread._local()

    # --- conversations -----------------------------------------------------------------------------------------------

    def conversation(self):
        try:
            return self.local.ticket.conversation
        except AttributeError:
            number = self.next_conversation
            self.next_conversation += 1
            return self.join(Conversation(self.link, number, Shared(self.first)))

    def join(self, conversation):
        self.link.conversations[conversation.number] = conversation
        self.local.ticket = Ticket(conversation)
        return conversation

    def begun(self, number):
        conversation = Conversation(self.link, number, Shared(self.first))
        _thread.start_new_thread(self.attend, (conversation,))
        return conversation

    def attend(self, conversation):
        """Serve a conversation that the other side has begun, in this thread, until it is over."""
        self.local.ticket = ticket = Ticket(conversation)
        while True:
            try:
                kind, epoch, body = self.link.next(conversation)
            except (EOFError, OSError):
                return
            if kind == b"C":
                self.serve(conversation, epoch, body)
            elif kind == b"Z":
                self.link.conversations.pop(conversation.number, None)
                ticket.conversation = None  # the other side knows
                return

    def told(self, body):
        """The solution's process has ended."""

    # --- asking ------------------------------------------------------------------------------------------------------

    def ask(self, *request):
        link, conversation = self.link, self.conversation()
        epoch = link.epoch
        dropped = ()
        if self.dropped:
            mine, self.dropped = self.dropped, []
            dropped = tuple((number, count) for number, count, then in mine if then == epoch)
        conversation.depth += 1
        try:
            try:
                body = Encoder(conversation.shared, self.foreign).message((dropped, *request))
            except CannotCross as error:
                self.told_of.clear()
                raise self.fault(f"cannot pass {error}") from None
            link.send(b"C", conversation.number, body, epoch)
            while True:
                if link.epoch != epoch:
                    raise self.lost()
                try:
                    kind, at, body = link.next(conversation)
                except (EOFError, OSError):
                    raise self.lost() from None
                if kind == b"C":
                    self.serve(conversation, at, body)
                elif kind == b"R" and at == epoch:
                    break
            try:
                done, value = Decoder(body, conversation.shared, self).message()
            except (CannotCross, TypeError, ValueError) as error:
                raise self.fault(f"an answer that is none: {error}") from None
        finally:
            conversation.depth -= 1
            if not conversation.depth:
                conversation.shared.clear()
        if done is True:
            return value
        if done is False and isinstance(value, BaseException):
            raise value
        raise self.fault(f"cannot get {value}")

    def fault(self, text):
        return Fault(text)

    def lost(self):
        return Fault("the other side is gone")

    # --- answering ---------------------------------------------------------------------------------------------------

    def serve(self, conversation, epoch, body):
        conversation.depth += 1
        try:
            try:
                dropped, operation, *arguments = Decoder(body, conversation.shared, self).message()
                for number, count in dropped:
                    self.release(number, count)
                answer = (True, self.operation(operation)(*arguments))
            except BaseException as error:
                answer = (False, error)
            try:
                reply = Encoder(conversation.shared, self.foreign).message(answer)
            except CannotCross as error:
                self.told_of.clear()
                reply = Encoder(conversation.shared, self.foreign).message((None, str(error)))
            except BaseException as error:
                text = f"a value: {type(error).__name__} while it was read"
                reply = Encoder(conversation.shared, self.foreign).message((None, text))
            self.link.send(b"R", conversation.number, reply, epoch)
        finally:
            conversation.depth -= 1
            if not conversation.depth:
                conversation.shared.clear()

    def operation(self, name):
        raise CannotCross(f"the request {name!r}")

    def keep(self, value):
        number = self.numbers.get(id(value))
        if number is None:
            number = self.next_number
            self.next_number += 1
            self.numbers[id(value)] = number
            self.kept[number] = [value, 0]
        self.kept[number][1] += 1
        return number

    def release(self, number, count):
        found = self.kept.get(number)
        if found is not None:
            found[1] -= count
            if found[1] <= 0:
                del self.kept[number]
                self.numbers.pop(id(found[0]), None)

    # --- what crosses as a handle ------------------------------------------------------------------------------------

    def foreign(self, value):
        """What an Encoder says of a value that is not plain."""
        if type(value) is RemoteMethod:
            return b"H", ("method", self.whose(value.__self__), value.__name__)
        ref = ref_of(value)
        if ref is None or ref.peer is not self:
            return b"H", self.describe(value)
        if ref.epoch == self.link.epoch:
            return b"M", ref.number
        if ref.origin is None:
            raise self.lost()
        return b"H", ("named", *ref.origin)

    def whose(self, value):
        ref = ref_of(value)
        if ref.epoch != self.link.epoch:
            raise self.lost()
        return ref.number

    def describe(self, value):
        kind = type(value)
        name = getattr(value, "__name__", None) if isinstance(value, (type, *FUNCTIONS)) else None
        if type(name) is str and SAFE.get(name) is value:
            return ("builtin", name)
        if isinstance(value, type):
            return ("class", self.describe_class(value))
        if isinstance(value, UNRELAYED):
            raise CannotCross(f"a {kind.__name__}")
        if isinstance(value, types.ModuleType):
            return ("module", value.__name__, hasattr(value, "__path__"))
        if isinstance(value, BaseException):
            return self.describe_error(value, CAUSES)
        if isinstance(value, FUNCTIONS):
            return ("function", self.keep(value))
        return self.describe_instance(value)

    def describe_instance(self, value):
        hashed = plain = None
        for base in PLAIN_BASES.values():
            if isinstance(value, base):
                plain = (base.__name__, None if base in CHANGEABLE else plain_value(base, value))
                break
        else:
            if type(value).__hash__ is object.__hash__:
                hashed = id(value) >> 4
            elif type(value).__hash__ is not None:
                try:
                    hashed = hash(value)
                except Exception:
                    hashed = None
            plain = fixed_fields(value)
        return ("object", self.keep(value), self.describe_class(type(value)), hashed, plain)

    def describe_class(self, cls):
        if SAFE.get(cls.__name__) is cls:
            return cls.__name__
        if failure(cls) is not None:
            return failure(cls)
        number = self.keep(cls)
        if number in self.told_of:
            return (number,)
        bases = tuple(self.describe_class(base) for base in cls.__bases__ if base is not object)
        specials = tuple(name for name in SPECIAL if getattr(cls, name, None) is not getattr(object, name, None))
        methods, seen = [], dir(cls)
        for name in seen:
            if not name.startswith("__") and isinstance(static(cls, name), types.FunctionType):
                methods.append(name)
        fields = getattr(cls, "__dataclass_fields__", None)
        equality, names, compared = "own", None, None
        if cls.__eq__ is object.__eq__:
            equality = "identity"
        elif isinstance(fields, dict):
            own = [field for field in fields.values() if field._field_type.name == "_FIELD"]
            names = tuple(field.name for field in own)
            compared = tuple(field.name for field in own if field.compare)
            if generated(cls):
                equality = "fields"
        doc = cls.__doc__ if isinstance(cls.__doc__, str) else None
        self.told_of.add(number)
        return (number, str(cls.__name__), str(cls.__module__), str(cls.__qualname__), doc and doc[:DOC_LIMIT], bases,
                specials, tuple(methods), equality, names, compared)  # fmt: skip

    def describe_error(self, value, depth):
        arguments = list(value.args) if isinstance(value.args, tuple) else []
        if isinstance(value, OSError) and value.filename is not None and len(arguments) == 2:
            arguments.append(value.filename)
        known = set(self.told_of)
        for at, argument in enumerate(arguments):
            try:
                Encoder(Shared(self.first), self.foreign).message(argument)
            except Exception:
                arguments[at] = said(repr, argument)
        self.told_of = known  # what was written has gone nowhere
        cause = context = None
        if depth and value.__cause__ is not None:
            cause = self.chained(value.__cause__, depth)
        elif depth and value.__context__ is not None:
            context = self.chained(value.__context__, depth)
        text, suppress = said(str, value), bool(value.__suppress_context__)
        cls = self.describe_class(type(value))
        extra = ()
        if type(cls) is str:  # an exception of the library's: what it holds beside its arguments
            items = vars(value).items()
            extra = tuple((k, v) for k, v in items if not k.startswith("_") and type(v) in (int, str, bytes, float))
        return ("error", self.keep(value), cls, tuple(arguments), text, cause, context, suppress, extra)

    def chained(self, value, depth):
        ref = ref_of(value)
        if ref is not None and ref.peer is self:
            return value
        return self.describe_error(value, depth - 1)

    # --- what has crossed as a handle --------------------------------------------------------------------------------

    def own(self, number):
        return self.kept[number][0]

    def made(self, fields):
        what, *rest = typed("what crossed", (fields, tuple))
        return MAKERS[what](self, *rest)

    def made_named(self, module, name):
        raise CannotCross("a name")

    made_module = made_named

    def made_builtin(self, name):
        return SAFE[name]

    def made_method(self, number, name):
        raise CannotCross("a method")

    def made_class(self, description):
        if type(description) is str:
            return failure_named(description) if ":" in description else SAFE[description]
        number = description[0]
        found = self.classes.get((self.link.epoch, number))
        if found is None:
            _, name, module, qualname, doc, bases, *rest = typed("a class", (description, tuple))
            specials, methods, equality, fields, compared = rest
            typed("a class", (number, int), *((text, str) for text in (name, module, qualname, doc or "", equality)))
            typed("a class", *((names, tuple) for names in (bases, specials, methods, fields or (), compared or ())))
            bases = tuple(self.made_class(base) for base in bases)
            found = self.renewed(number, module, qualname) or standin.make_class(
                self, number, name, module, qualname, doc, bases, *rest
            )
            self.classes[self.link.epoch, number] = found
        return found

    def renewed(self, number, module, qualname):
        """The stand-in of the class of that name in an earlier process, if there was one."""
        for (epoch, _), cls in list(self.classes.items()):
            if epoch != self.link.epoch and (cls.__module__, cls.__qualname__) == (module, qualname):
                ref = ref_of(cls)
                if ref.epoch != self.link.epoch:
                    ref.number, ref.epoch = number, self.link.epoch
                    return cls
        return None

    def standing(self, number, make):
        """The stand-in with that number: the same as long as anybody has it."""
        key = (self.link.epoch, number)
        found = self.standins.get(key)
        value = found() if found is not None else None
        if value is not None:
            ref_of(value).count += 1
            return value
        value = make(Ref(self, number))
        self.standins[key] = weakref(value)
        return value

    def made_function(self, number):
        typed("a function", (number, int))

        def make(ref):
            value = standin.RemoteFunction()
            value._codeenv_ref = ref
            return value

        return self.standing(number, make)

    def made_object(self, number, description, hashed, plain):
        cls = self.made_class(description)
        typed("an object", (number, int), (hashed or 0, int), (plain or (), tuple))
        if not isinstance(cls, RemoteType):  # an instance of a builtin class that is not plain: a generator, say
            cls = self.builtin_class(cls)
        return self.standing(number, lambda ref: standin.make_instance(cls, ref, hashed, plain))

    def builtin_class(self, cls):
        found = self.classes.get((-1, cls))
        if found is None:
            specials = [name for name in SPECIAL if getattr(cls, name, None) is not getattr(object, name, None)]
            found = self.classes[-1, cls] = standin.make_class(
                self, 0, cls.__name__, "builtins", cls.__qualname__, None, (), specials, (), "identity", None, None
            )
        return found

    def made_error(self, number, description, arguments, text, cause, context, suppress, extra):
        cls = self.made_class(description)
        typed("an exception", (number, int), (arguments, tuple), (text, str), (extra, tuple))
        if not issubclass(cls, BaseException):
            raise CannotCross("an exception that is none")

        def make(ref):
            value = standin.make_error(cls, ref, arguments, text, extra)
            value.__cause__ = self.made_chained(cause)
            value.__context__ = self.made_chained(context)
            value.__suppress_context__ = suppress is True
            return value

        return self.standing(number, make)

    def made_chained(self, fields):
        return self.made(fields) if type(fields) is tuple else fields


MAKERS = {
    "named": lambda peer, *fields: peer.made_named(*fields),
    "module": lambda peer, *fields: peer.made_module(*fields),
    "method": lambda peer, *fields: peer.made_method(*fields),
    "builtin": Peer.made_builtin,
    "class": Peer.made_class,
    "function": Peer.made_function,
    "object": Peer.made_object,
    "error": Peer.made_error,
}
