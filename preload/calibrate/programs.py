# programs.py - the loops that calibrate.c times. They run in the program, in a namespace of their own.
#
# Each loop has one kind of call, in several shapes that are frequent in programs.
__name__ = 'evprof.calibrate'
times = tuple(range(100))
def leaf(): pass
def middle(a, b, c): return b
def same(a): return a
class Point:
    def __init__(self, x, y):
        self.x = x
        self.y = y
    def get(self): return self.x
    def __neg__(self): return self
    def __getitem__(self, key): return key
point = Point(1, 2)
def sparse_1(l, p, n):
    a = n * 3 + 1
    if a & 2: a -= n
    leaf()
    b = (a, n, 2.5)
    c = b[0] < 7 or b[1] != n
    l.append(n)
    p.x, p.y = p.y, b[2] * 0.5
    d = [c, b]
    p.get()
    return d[1]
def sparse_2(d, n, t):
    s = t[1:] + 'x'
    k = s == t or n in d
    middle(n, n, n)
    d[n & 15] = s
    x = n * 0.5 - 1.25
    d.get(n)
    for y in (x, 2.0): x += y
    t.startswith('b')
    return x > 5.0 and not k
def sparse_3(l, n):
    s = f'{n}:{n & 3}'
    u = s < 'x' or not l
    l.pop()
    a, b = (n, u) if n & 1 else (u, n)
    same(n)
    return {a: b, 'n': s}
def sparse(times):
    l = []; d = {}; p = point
    for i in times[::4]: sparse_1(l, p, i); sparse_2(d, i, 'abc'); sparse_3(l, i)
def plain(times):
    n = 0; pair = [1, 2]; p = point
    for i in times:
        n = n * 3 + 1 & 255
        if n > 7: p.x = pair[0]
        pair = [p.x, n]
def each(times):
    for i in times: yield i
def resumes(times):
    for i in each(times): pass
def leaves(times):
    for i in times: leaf()
# The rest is not needed for EVPROF_BUDGET.
def some(a, b=2, *, c=3): return b
def outer(a): return middle(a, 1, a)
def down(n): return n if n < 1 else down(n - 1) + 1
def calls(times):
    p = point
    for i in times:
        leaf(); middle(1, 2, 3); some(1); p.get(); outer(i); down(3)
def lengths(times, x=(1, 2)):
    for i in times: len(x)
# Lines that never run. They move what follows far from the start of the code: beyond the small integers of any version.
far = 80 * '        n = n + n + n\n'
small = 0
while small < 4096 and small + 1 is small - -1: small += 1
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
def fails(): raise error
error = ValueError()
exec('def remote(times):\n    n = times\n    if n is None:\n' + far + '    for i in times: yield i\n')
def once():
    yield 1
def nothing(times):
    for i in times: pass
def recursion(times): fib(12)
def catches(times):
    for i in times:
        try: fails()
        except ValueError: error.__traceback__ = None
def entries(times):
    p = point
    for i in times: -p; p[1]
def callbacks(times): sorted(times, key=same)
def inits(times):
    for i in times: Point(1, 2)
def walks(times):
    for i in remote(times): pass
def pulls(times): sum(each(times))
def generators(times):
    for i in times:
        for k in once(): pass
exec('def distances(times, x=(1, 2)):\n    n = times\n    if n is None:\n' + far + '    for i in times: len(x)\n')
def appends(times):
    l = []
    for i in times: l.append(i)
def c_functions(times, x=(1, 2), y='a'):
    for i in times: len(x); isinstance(x, tuple); ord(y)
def methods(times, x={}, y='abc'):
    l = []
    for i in times: x.get(1); l.append(1); y.startswith('a'); l.pop()
def others(times):
    for i in times: str(i); int(i); float(i); tuple(times)
def dense_1(l, p, n):
    leaf(); l.append(n); p.get()
def dense_2(d, n, t):
    middle(n, n, n); d.get(n); t.startswith('b')
def dense_3(l, n):
    l.pop(); same(n)
def dense(times):
    l = []; d = {}; p = point
    for i in times[::4]: dense_1(l, p, i); dense_2(d, i, 'abc'); dense_3(l, i)
def allocations(times, x='abc', y='def'):
    for i in range(400, 500): x + y
