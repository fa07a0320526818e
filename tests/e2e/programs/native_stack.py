"""Allocates with the functions of native_stack.c, and prints for each block its size and the stack that backtrace() saw."""
import ctypes
import os
import sys
import threading

DOMAINS = {"obj": ("PyObject_Malloc", "PyObject_Free"), "mem": ("PyMem_Malloc", "PyMem_Free"),
           "raw": ("PyMem_RawMalloc", "PyMem_RawFree")}
lock = threading.Lock()


def address(name):
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p)


def load(path):
    library = ctypes.PyDLL(path)
    library.native_trace.restype = ctypes.c_char_p
    return library


def allocate(library, function, domain, size):
    call = getattr(library, function)
    call.restype = ctypes.c_void_p
    call.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    allocator, free = (address(name) for name in DOMAINS[domain])
    block = call(allocator, size)
    trace = library.native_trace().decode()
    release = ctypes.pythonapi[DOMAINS[domain][1]]
    release.argtypes = [ctypes.c_void_p]
    release.restype = None
    release(block)
    with lock:
        sys.stdout.write("%d %s\n" % (size, trace))
        sys.stdout.flush()


def unload(library):
    import _ctypes
    _ctypes.dlclose(library._handle)


def depths(paths):
    size = 1000001
    for path in paths:
        library = load(path)
        for domain in sorted(DOMAINS):
            for function in "native_inner", "native_all":
                allocate(library, function, domain, size)
                size += 1


def bounds(paths):
    library = load(paths[0])
    allocate(library, "native_recursive", "mem", 1000001)
    allocate(library, "native_elsewhere", "mem", 1000002)
    allocate(library, "native_inner", "mem", 1000003)


def threads(paths):
    library = load(paths[0])

    def work(number):
        for i in range(20):
            allocate(library, ("native_inner", "native_all")[i % 2], "mem", 1000001 + 100 * number + i)

    them = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in them:
        thread.start()
    for thread in them:
        thread.join()


def forks(paths):
    library = load(paths[0])
    allocate(library, "native_all", "mem", 1000001)
    for i in range(3):
        pid = os.fork()
        if not pid:
            allocate(library, "native_all", "mem", 1000002 + i)
            os._exit(0)
        os.waitpid(pid, 0)


def unloads(paths):
    for i in range(6):
        library = load(paths[i % len(paths)])
        allocate(library, "native_all", "mem", 1000001 + i)
        unload(library)


globals()[sys.argv[1]](sys.argv[2:])
