"""Has a secret, its first argument, in all places that a trace has texts of: for test_redact.c."""
import os
import sys
import threading

import evprof

secret = sys.argv[1]
path = os.path.join(os.getcwd(), secret)
os.makedirs(path, exist_ok=True)
with open(os.path.join(path, "module_%s.py" % secret), "w") as file:
    file.write("def %s(n):\n    return bytes(n)\nclass %sError(Exception):\n    pass\n"
               "def fails():\n    raise %sError('sold out')\n" % (secret, secret, secret))
sys.path.insert(0, path)
module = __import__("module_" + secret)
for n in range(100):
    getattr(module, secret)(n)
for _ in range(3):
    try:
        module.fails()
    except Exception:
        pass
thread = threading.Thread(target=getattr(module, secret), args=(5,), name="thread of " + secret)
thread.start()
thread.join()
evprof.mark("mark " + secret, who=secret)
# Where a text goes on in a further event, the secret stands on the border, too.
for before in range(0, 200, 7):
    with evprof.span("span of " + secret, path="é" * (before // 2) + "." * (before % 2) + secret, plain="nothing", number=before):
        pass
evprof.counter("counter " + secret, 5)
