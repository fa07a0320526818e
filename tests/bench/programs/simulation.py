"""A queueing simulation of many small objects: events in a heap, machines, jobs, virtual methods, properties."""
import heapq

ROUNDS = 6
UNTIL = 9000


class Event:
    def __init__(self, time, order, target):
        self.time = time
        self.order = order
        self.target = target

    def __lt__(self, other):
        return (self.time, self.order) < (other.time, other.order)


class Clock:
    def __init__(self):
        self.now = 0
        self.order = 0
        self.events = []

    def after(self, delay, target):
        self.order += 1
        heapq.heappush(self.events, Event(self.now + delay, self.order, target))

    def run(self, until):
        while self.events and self.now < until:
            event = heapq.heappop(self.events)
            self.now = event.time
            event.target.wake(self)


class Job:
    def __init__(self, number, route):
        self.number = number
        self.route = route
        self.step = 0

    @property
    def done(self):
        return self.step >= len(self.route)

    def next_station(self):
        station = self.route[self.step]
        self.step += 1
        return station


class Station:
    def __init__(self, name):
        self.name = name
        self.waiting = []
        self.current = None
        self.finished = 0

    def service_time(self, job):
        raise NotImplementedError

    def accept(self, job, clock):
        self.waiting.append(job)
        if self.current is None:
            self.start(clock)

    def start(self, clock):
        self.current = self.waiting.pop(0)
        clock.after(self.service_time(self.current), self)

    def wake(self, clock):
        job, self.current = self.current, None
        self.finished += 1
        if not job.done:
            job.next_station().accept(job, clock)
        if self.waiting and self.current is None:
            self.start(clock)


class Drill(Station):
    def service_time(self, job):
        return 2 + job.number % 3


class Press(Station):
    def service_time(self, job):
        return 1 + (job.number * 7) % 4


class Source:
    def __init__(self, routes):
        self.routes = routes
        self.made = 0

    def wake(self, clock):
        self.made += 1
        job = Job(self.made, self.routes[self.made % len(self.routes)])
        job.next_station().accept(job, clock)
        clock.after(1, self)


def simulate():
    stations = [Drill("drill %d" % i) for i in range(4)] + [Press("press %d" % i) for i in range(4)]
    routes = [stations[i:] + stations[:i] for i in range(0, 8, 3)]
    clock = Clock()
    source = Source([route[:4] for route in routes])
    clock.after(0, source)
    clock.run(UNTIL)
    assert source.made >= UNTIL and sum(station.finished for station in stations) > UNTIL


def main():
    for _ in range(ROUNDS):
        simulate()
