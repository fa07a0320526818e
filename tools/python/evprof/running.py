"""What a thread runs when a stretch of time begins: tools/replay/initial_stack.c is the model. Used by threads.py."""
import numpy as np

from .kinds import EMPTIES, FRAME, GAP, OPEN, STACK, STACK_CUT, SWITCH, TELLS
from .stack import NOBODY, Stacks, ends_of_others

_LOOK_BACK_EVENTS = 1 << 22  # of a thread, before a stretch


class _Beneath:
    """Which stacks may have frames beneath those that are known, as tools/replay/replay.c tells it."""

    def __init__(self, unknown):
        self.current = unknown  # that which runs has
        self._greenlet, self._kept = 0, {}
        self._others, self._met = unknown, False  # those of which nothing is known have; any greenlet was met

    def forget(self):
        self.current = True
        self._greenlet, self._kept = 0, {}
        self._others |= self._met

    def _switch(self, target, origin):
        self._met = True
        if not target or not origin:
            return
        if self._greenlet in (0, origin):
            self._kept[origin] = self.current
        self._greenlet, self.current = target, self._kept.pop(target, self._others)

    def follow(self, part, moves):
        pairs = iter(moves.switches.tolist())
        marks = np.flatnonzero(TELLS[moves.kinds] | (moves.kinds == SWITCH))
        for kind, head in zip(moves.kinds[marks].tolist(), part.heads[moves.at[marks]].tolist()):
            if kind == SWITCH:
                self._switch(*next(pairs))
            elif kind == STACK:
                self.current = bool(head >> 5 & STACK_CUT)
            else:
                self.forget()


class Running:
    """frames: the functions that run, outermost first. greenlet: the one that does, 0: not known; others: the stacks of the
    others, by greenlet."""

    def __init__(self, source):
        self._source, self._stacks = source, Stacks()
        first, told = self._look_back()
        self._beneath = _Beneath(first > 0 or source.thread.process.meta.get("start") == "rejoin")
        beneath = self._replay(source.parts(first), told)
        self.greenlet, self.others = self._stacks.current, self._stacks.others()
        self.frames = beneath + self._stacks.frames()

    def _look_back(self):
        """The place from which on to replay: where the stack was last told, or the first. And the event that tells it, if those
        after it need not be seen as an end of what was before."""
        source, read = self._source, 0
        place = source.first
        while place and read < _LOOK_BACK_EVENTS:
            place -= 1
            read += source.thread.places[place].events
            events, hole = next(source.stream(place), (None, True))
            if events is None:
                return place, None
            told = self._tells(events, place == 0)
            if hole or len(told):
                opens = len(told) and events.kinds[told[-1]] == OPEN and events.number < source.first
                return place, int(told[-1]) if opens else None
        return source.first if place else 0, None

    @staticmethod
    def _tells(events, is_first):
        """The events behind which it is known what runs, or that nothing is known."""
        opens = events.kinds == OPEN
        opens[1:] &= ~opens[:-1].copy()
        opens[:1] &= is_first  # the chunk before may begin what goes on here
        return np.flatnonzero(opens | TELLS[events.kinds])

    def _replay(self, parts, told):
        """Goes on to the beginning of the stretch. Returns what is found to be beneath what is known then."""
        for part in parts:
            if part.events is None or (part.hole and self._source.matters(part.events)):
                break
            if part.hole:
                self._beneath.forget()
            at, opened = 0, []
            if told is not None:
                at, opened = self._opened(part.events, told)
                told = 0 if at == part.events.count else None
                self._beneath.current = False
            before = part.piece(at, max(at, part.start))
            moves = self._source.moves(before)
            self._beneath.follow(before, moves)
            moves = moves.preceded(FRAME, opened, 0, 0)
            self._stacks.run(moves.preceded(GAP, [NOBODY], 0, 0) if part.hole else moves)
            if part.start < part.events.count:
                return self._beneath_known(part, parts) if self._beneath.current else []
        return []

    def _opened(self, events, at):
        """The number of the event behind those that tell the stack from number `at` on, and that stack."""
        behind = at
        while behind < events.count and events.kinds[behind] == OPEN:
            behind += 1
        functions = self._source.functions_of(events.heads[at:behind], events.kinds[at:behind])
        shown = self._source.shown(functions)
        return behind, (functions if shown is None else functions[shown]).tolist()

    def _beneath_known(self, part, parts):
        """What ends in the stretch without having begun in it or before, outermost first."""
        frames, found = self._stacks.frames(), []
        while True:
            stops = np.flatnonzero(EMPTIES[part.kinds] | (part.kinds == SWITCH))
            end = part.start + int(stops[0]) if len(stops) else part.end
            moves = self._source.moves(part.piece(part.start, end))
            ended, frames = ends_of_others(frames, moves.keep(moves.kinds != FRAME))
            found.extend(ended)
            if len(stops) or part.is_cut:
                break
            part = next(parts, None)
            if part is None or part.hole:
                break
        return found[::-1]
