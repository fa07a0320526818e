"""Starts a program as systemd starts the service of a unit file: its user, its capabilities and its system calls.

    as_the_unit.py UNIT UID PROGRAM [ARGUMENT]...
"""
import ctypes
import errno
import os
import platform
import re
import struct
import subprocess
import sys

libc = ctypes.CDLL(None, use_errno=True)
CAPABILITIES = {"CAP_KILL": 5, "CAP_SETGID": 6, "CAP_SETUID": 7, "CAP_SYS_PTRACE": 19}
KEEPCAPS, CAPBSET_DROP, SECCOMP, NO_NEW_PRIVS, AMBIENT = 8, 24, 22, 38, 47
ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


def check(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def settings(unit, name):
    return [line.split("=", 1)[1].split() for line in open(unit) if line.startswith(name + "=")]


def groups():
    found, group = {}, None
    for line in subprocess.check_output(["systemd-analyze", "syscall-filter"], text=True).splitlines():
        line = re.sub(r"\x1b\[[0-9;]*m", "", line)
        if line.startswith("@"):
            group = found.setdefault(line.strip(), [])
        elif line.startswith("    ") and group is not None and not line.strip().startswith("#"):
            group.append(line.strip())
    return found


def calls(words, known):
    for word in words:
        if word.startswith("@"):
            for call in calls(known[word], known):
                yield call
        else:
            yield word


def allowed(unit):
    known, names = groups(), set()
    names.update(calls(["@default"], known))
    for words in settings(unit, "SystemCallFilter"):
        if words[0].startswith("~"):
            names.difference_update(calls([words[0][1:]] + words[1:], known))
        else:
            names.update(calls(words, known))
    headers = subprocess.run(["cc", "-E", "-dM", "-"], input="#include <sys/syscall.h>\n", text=True, check=True,
                             stdout=subprocess.PIPE).stdout
    return {int(number) for name, number in re.findall(r"#define __NR_(\w+) (\d+)\n", headers) if name in names}


def filter_calls(numbers):
    steps = [(0x20, 0, 0, 4), (0x15, 1, 0, ARCHITECTURES[platform.machine()]), (0x06, 0, 0, 0x80000000), (0x20, 0, 0, 0)]
    for number in sorted(numbers):
        steps += [(0x15, 0, 1, number), (0x06, 0, 0, 0x7FFF0000)]
    steps.append((0x06, 0, 0, 0x00050000 | errno.EPERM))
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = struct.pack("HP", len(steps), ctypes.addressof(code))
    check(libc.prctl(NO_NEW_PRIVS, 1, 0, 0, 0))
    check(libc.prctl(SECCOMP, 2, program, 0, 0))


def become(uid, bounding, ambient):
    for capability in range(int(open("/proc/sys/kernel/cap_last_cap").read()) + 1):
        if capability not in bounding:
            check(libc.prctl(CAPBSET_DROP, capability, 0, 0, 0))
    check(libc.prctl(KEEPCAPS, 1, 0, 0, 0))
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    bits = sum(1 << capability for capability in ambient)
    check(libc.capset(struct.pack("II", 0x20080522, 0), struct.pack("6I", bits, bits, bits, 0, 0, 0)))
    for capability in ambient:
        check(libc.prctl(AMBIENT, 2, capability, 0, 0))


def main(unit, uid, *command):
    numbers = allowed(unit)
    bounding, ambient = ([CAPABILITIES[word] for word in settings(unit, name)[0]]
                         for name in ("CapabilityBoundingSet", "AmbientCapabilities"))
    become(int(uid), bounding, ambient)
    filter_calls(numbers)
    os.execv(command[0], command)


main(*sys.argv[1:])
