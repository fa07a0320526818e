"""A web application that ends its server a moment after the start."""
import os
import signal
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import known

known.everything()
threading.Timer(1.0, lambda: os.kill(os.getppid(), signal.SIGINT)).start()


def application(environ, start_response):
    start_response("200 OK", [])
    return [b""]
