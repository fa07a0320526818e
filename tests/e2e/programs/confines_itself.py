"""confines_itself.py prctl|syscall: puts on a filter that kills at calls that it does not make itself, and works on."""
import os
import sys
import threading

import known
import seccomp_filter

seccomp_filter.put_on(sys.argv[1], ["memfd_create", "socket", "connect", "sendmsg", "pidfd_open", "kill"],
                      seccomp_filter.KILL_PROCESS)
known.everything()
thread = threading.Thread(target=known.everything)
thread.start()
thread.join()
sys.stdout.flush()
pid = os.fork()
if pid == 0:
    known.everything()
    os._exit(3)
print("child", os.waitpid(pid, 0)[1])
