"""Holds a socket and has a daemon listen there, as systemd does: `holds_socket.py SOCKET COLLECTOR FOLDER...`. After the end
of the daemon that writes to a folder the next one begins, with the next folder."""
import os
import socket
import sys

listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.bind(sys.argv[1])
listener.listen(128)
for folder in sys.argv[3:]:
    pid = os.fork()
    if pid == 0:
        os.dup2(listener.fileno(), 3)
        os.set_inheritable(3, True)
        environment = dict(os.environ, LISTEN_PID=str(os.getpid()), LISTEN_FDS="1")
        os.execve(sys.argv[2], [sys.argv[2], "--output-dir", folder], environment)
    os.waitpid(pid, 0)
