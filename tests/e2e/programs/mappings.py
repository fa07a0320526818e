"""Prints what is resident of it just before it ends: in all, and of mapped files, in KiB."""
import mmap
import os

kept = [b"x" * 100000 for i in range(300)]
shared = mmap.mmap(-1, 20 << 20)
shared.write(b"x" * len(shared))
name, whole, files = "", 0, 0
with open("/proc/self/smaps") as lines:
    for line in lines:
        words = line.split()
        if words[0] == "Rss:":
            whole += int(words[1])
            is_file = name.startswith("/") and not name.startswith(("/memfd:", "/dev/zero"))
            files += int(words[1]) if is_file else 0
        elif "-" in words[0] and not words[0].endswith(":"):
            name = words[5] if len(words) > 5 else ""
print(whole, files, flush=True)
os._exit(0)
