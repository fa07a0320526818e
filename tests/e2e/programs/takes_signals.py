"""takes_signals.py sigwait|sigwaitinfo|sigtimedwait|signalfd: blocks all signals and takes the first, while a thread works."""
import ctypes
import os
import signal
import sys
import threading
import time


def work():
    def leaf():
        pass

    until = time.process_time() + 0.4
    while time.process_time() < until:
        leaf()
    os.kill(os.getpid(), signal.SIGTERM)


def take_from_descriptor(signals):
    libc = ctypes.CDLL(None)
    mask = (ctypes.c_ulong * 16)()
    for number in signals:
        mask[0] |= 1 << number - 1
    return os.read(libc.signalfd(-1, mask, 0), 128)[0]


every = set(range(1, 65)) - {signal.SIGKILL, signal.SIGSTOP, 32, 33}
signal.pthread_sigmask(signal.SIG_BLOCK, every)
threading.Thread(target=work, daemon=True).start()
if sys.argv[1] == "sigwait":
    print(int(signal.sigwait(every)))
elif sys.argv[1] == "sigwaitinfo":
    print(signal.sigwaitinfo(every).si_signo)
elif sys.argv[1] == "sigtimedwait":
    print(signal.sigtimedwait(every, 20).si_signo)
else:
    print(take_from_descriptor(every))
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGURG])
os.kill(os.getpid(), signal.SIGURG)
print(int(signal.sigwait([signal.SIGURG])))
