"""typing, abstract classes, protocols, numbers, enumerations with flags, unions, context variables."""
import collections.abc
import contextvars
import decimal
import enum
import numbers
import statistics
import sys
import typing

T = typing.TypeVar("T")


class Box(typing.Generic[T]):
    def __init__(self, value: T) -> None:
        self.value = value


class Named(typing.NamedTuple):
    name: str
    count: int = 0


class Access(enum.IntFlag):
    READ = 1
    WRITE = 2
    BOTH = READ | WRITE


class Sized(collections.abc.Sequence):
    def __getitem__(self, index):
        if index > 4:
            raise IndexError(index)
        return index * 2

    def __len__(self):
        return 5


class Money(numbers.Number):
    def __hash__(self):
        return 1


@typing.overload
def overloaded(value: int) -> int: ...


@typing.overload
def overloaded(value: str) -> str: ...


def overloaded(value):
    return value


def hints():
    def function(a: "int", b: typing.List["Named"], *c: typing.Optional[str]) -> typing.Dict[str, "Box[int]"]:
        return {}
    kinds = [typing.Union[int, str, None], typing.Callable[[int], str], typing.Tuple[int, ...], Box[int], Box[typing.List[T]][str]]
    return [repr(kind) for kind in kinds], typing.get_type_hints(function, globals()), Box[int](3).value, typing.cast(int, "x")


def newer():
    if sys.version_info < (3, 8):
        return None

    class Closes(typing.Protocol):
        def close(self) -> None: ...

    checked = typing.runtime_checkable(Closes)

    class Movie(typing.TypedDict, total=False):
        name: str
    return isinstance(Box(1), checked), isinstance(open, checked), Movie(name="x"), typing.get_origin(typing.List[int])


def flags():
    return (list(Access), Access(3) is Access.BOTH, Access.READ in Access.BOTH, ~Access.READ & Access.WRITE, Access["READ"],
            repr(Access(0)), enum.Enum("Made", "a b c").b.value)


def sequences():
    sized = Sized()
    return list(sized), 4 in sized, sized.index(6), list(reversed(sized)), isinstance(sized, collections.abc.Sized), \
        isinstance(Money(), numbers.Number), Named("x")._replace(count=3), overloaded(1)


def contexts():
    variable = contextvars.ContextVar("variable", default=0)
    context = contextvars.copy_context()

    def change(value):
        token = variable.set(value)
        contextvars.copy_context().run(variable.get)
        variable.reset(token)
        return variable.get()
    return context.run(change, 3), [context.run(change, n) for n in range(4)]


def calculated():
    with decimal.localcontext() as context:
        context.prec = 12
        values = [decimal.Decimal(n) / 7 for n in range(1, 8)]
        return statistics.mean(values), statistics.pstdev(values), max(values).quantize(decimal.Decimal("0.01")), sum(values)


def main():
    variables = contexts() if sys.version_info >= (3, 7) else None
    return [(hints(), newer(), flags(), sequences(), calculated()) for _ in range(2)], variables
