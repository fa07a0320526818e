"""Tables as texts."""


class Text(str):
    """A table that is a text: print() shows it, and so do an interactive Python and a notebook, where it is the last value.

    >>> import evprof
    >>> evprof.Text("a table")
    a table
    """
    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)
