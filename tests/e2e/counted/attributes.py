"""Descriptors, properties, metaclasses, class hooks, and the many ways in which methods of C types are called."""
import functools
import types


class Typed:
    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, instance, owner):
        return self if instance is None else getattr(instance, self.name, 0)

    def __set__(self, instance, value):
        setattr(instance, self.name, int(value))

    def __delete__(self, instance):
        delattr(instance, self.name)


class Meta(type):
    made = []

    @classmethod
    def __prepare__(mcs, name, bases, **options):
        return dict()

    def __new__(mcs, name, bases, space, **options):
        mcs.made.append(name)
        return super().__new__(mcs, name, bases, space)

    def __init__(cls, name, bases, space, **options):
        super().__init__(name, bases, space)

    def __call__(cls, *arguments, **options):
        return super().__call__(*arguments, **options)

    def __instancecheck__(cls, instance):
        return super().__instancecheck__(instance)

    def __len__(cls):
        return len(cls.made)

    def __getattr__(cls, name):
        if name.startswith("dynamic"):
            return name
        raise AttributeError(name)


class Base(metaclass=Meta, option=1):
    first, second = Typed(), Typed()

    def __init_subclass__(cls, **options):
        super().__init_subclass__()
        cls.options = options

    def __class_getitem__(cls, item):
        return item

    def __getattribute__(self, name):
        return super().__getattribute__(name)

    def __setattr__(self, name, value):
        object.__setattr__(self, name, value)

    @property
    def both(self):
        return self.first, self.second

    @both.setter
    def both(self, pair):
        self.first, self.second = pair

    @classmethod
    def build(cls, *pair):
        made = cls()
        made.both = pair
        return made

    @staticmethod
    def plain(value=1, *rest, key=None, **more):
        return value, rest, key, sorted(more)

    def __call__(self, *arguments, **options):
        return len(arguments) + len(options)


class Slotted:
    __slots__ = ("one", "two")


class Numbers(list):
    def append(self, value):
        super().append(value * 2)

    def __contains__(self, value):
        return list.__contains__(self, value)

    def __missing__(self, key):
        return key


class Table(dict):
    def __missing__(self, key):
        self[key] = len(self)
        return self[key]


def decorated(function):
    @functools.wraps(function)
    def around(*arguments, **options):
        return function(*arguments, **options)
    return around


@decorated
@decorated
def twice(value, scale=2):
    return value * scale


def objects():
    kind = Meta("Made", (Base,), {"value": 3})

    class Local(Base, wanted=True):
        pass

    thing = Local.build("1", 2.5)
    del thing.first
    thing(1, *[2, 3], key=4, **{"other": 5})
    return (kind().value, thing.both, isinstance(thing, Base), Base["x"], Base.dynamic, len(Base), Local.options,
            thing.plain(1, 2, key=3, more=4), Base.plain(*range(3), **{"a": 1}), twice(3), twice(3, scale=4),
            types.new_class("New", (Base,), {}, lambda space: space.update(x=1)).x)


def c_methods():
    text, numbers, table = "a,b,c", [3, 1, 2], {"k": 1}
    append, join, one = numbers.append, ",".join, int.__add__
    append(4)
    list.append(numbers, 5)
    numbers.sort(key=lambda n: -n, reverse=True)
    numbers.extend(*[[6]])
    list.sort(*[numbers], **{"reverse": True})
    added = [one(1, 2), (1).__add__(2), int.from_bytes(b"\x01", "big"), dict.fromkeys("ab", 1), str.join(",", "xy"),
             join(text.split(",")), text.split(sep=",", maxsplit=1), table.get("k"), table.get(*("x", 2)), str.upper("x"),
             "x".encode().decode("ascii"), float.fromhex("0x1p3"), object.__repr__, type("x").__name__.lower(),
             bytes.maketrans(b"a", b"b")[97], "%d".__mod__(3), [].__len__(), getattr("x", "upper")(), text.__class__("y")]
    print("", end="", sep="", **{"file": None}) if not added else None
    return len(added), numbers


def partials():
    add = functools.partial(twice, scale=3)
    method = types.MethodType(lambda self, n: n, 1)
    cached = functools.lru_cache(maxsize=2)(lambda n: n * 2)
    single = functools.singledispatch(lambda value: "any")
    single.register(int, lambda value: "int")
    return add(2), functools.partial(add, 4)(), method(3), [cached(n) for n in (1, 2, 1, 3, 1)], single(1), single("x")


def containers():
    table, numbers = Table(), Numbers()
    for n in range(5):
        numbers.append(n)
        table[n % 2]
    slotted = Slotted()
    slotted.one = 1
    try:
        slotted.two
    except AttributeError:
        pass
    return table, 4 in numbers, slotted.one


def main():
    return [(objects(), c_methods(), partials(), containers()) for _ in range(6)]
