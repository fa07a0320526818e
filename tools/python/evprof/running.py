"""What a thread runs when a stretch of time begins: tools/replay/initial_stack.c is the model. Used by threads.py."""
import numpy as np

from .kinds import EMPTIES, FRAME, GAP, OPEN, STACK, STACK_CUT, SWITCH, TELLS
from .stack import NOBODY, Stacks, ends_of_others

_LOOK_BACK_EVENTS = 1 << 22  # of a thread, before a stretch


class _Beneath:
    """Whether stacks may have frames below their known ones. The model is tools/replay/replay.c."""

    def __init__(self, unknown):
        self.current = unknown  # the running stack has unknown frames
        self._greenlet, self._kept = 0, {}
        self._others, self._met = unknown, False  # stacks that were not seen have; a greenlet was seen

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
    """The initial stacks. frames: of the running greenlet, outermost first. greenlet: that one, 0: unknown; others: the other
    stacks, by greenlet."""

    def __init__(self, source):
        self._source, self._stacks = source, Stacks()
        first, known = self._look_back()
        self._beneath = _Beneath(first > 0 or source.thread.process.meta.get("start") == "rejoin")
        beneath = self._replay(source.parts(first), known)
        self.greenlet, self.others = self._stacks.current, self._stacks.others()
        self.frames = beneath + self._stacks.frames()

    def _look_back(self):
        """The place where the replay starts: the last one with a known stack, or the first. And the event with that stack, if it
        does not end an earlier one."""
        source, read = self._source, 0
        place = source.first
        while place and read < _LOOK_BACK_EVENTS:
            place -= 1
            read += source.thread.places[place].events
            events, hole = next(source.stream(place), (None, True))
            if events is None:
                return place, None
            known = self._stack_events(events, place == 0)
            if hole or len(known):
                opens = len(known) and events.kinds[known[-1]] == OPEN and events.number < source.first
                return place, int(known[-1]) if opens else None
        return source.first if place else 0, None

    @staticmethod
    def _stack_events(events, is_first):
        """The events after which the stack is known, or known to be unknown."""
        opens = events.kinds == OPEN
        opens[1:] &= ~opens[:-1].copy()
        opens[:1] &= is_first  # the previous chunk may begin a stack that continues here
        return np.flatnonzero(opens | TELLS[events.kinds])

    def _replay(self, parts, known):
        """Replays up to the start of the time range. Returns the frames that are found below the known ones."""
        for part in parts:
            if part.events is None or (part.hole and self._source.matters(part.events)):
                break
            if part.hole:
                self._beneath.forget()
            at, opened = 0, []
            if known is not None:
                at, opened = self._opened(part.events, known)
                known = 0 if at == part.events.count else None
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
        """The stack whose events begin at number `at`, and the number of the event after them."""
        behind = at
        while behind < events.count and events.kinds[behind] == OPEN:
            behind += 1
        functions = self._source.functions_of(events.heads[at:behind], events.kinds[at:behind])
        shown = self._source.shown(functions)
        return behind, (functions if shown is None else functions[shown]).tolist()

    def _beneath_known(self, part, parts):
        """The calls that end in the time range and begin nowhere, outermost first."""
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
