"""Types into an interactive shell as somebody does, with the tabulator, and prints the words that it ran. For test_completion.c.

    complete.py bash|zsh|fish EVPROF

The shell runs on a terminal of its own, in the working directory. A function stands in for evprof: it prints its words.
"""
import os
import pty
import re
import select
import subprocess
import sys
import time

START = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "evprof() { printf 'GOT<'; printf '[%s]' \"$@\"; echo '>'; }\nsource ./completion\n"),
    "zsh": (["zsh", "-f", "-i"], "autoload -U compinit; compinit -u -d ./dump\n"
            "evprof() { printf 'GOT<'; printf '[%s]' \"$@\"; echo '>'; }\nsource ./completion\n"),
    "fish": (["fish", "--no-config", "-i"], "function evprof; printf 'GOT<'; printf '[%s]' $argv; echo '>'; end\nsource ./completion\n"),
}
TYPED = [
    ("rep\t", "[report]"),
    ("report --rev\t", "[report][--reverse]"),
    ("report --sort cumu\t", "[report][--sort][cumulative]"),
    ("report --sort=cumu\t", "[report][--sort=cumulative]"),
    ("export --format perf\t", "[export][--format][perfetto]"),
    ("diff --sort by\t", "[diff][--sort][bytes]"),
    ("diff --fail\t calls", "[diff][--fail-on][calls]"),
    ("report --clock off\t --strip\t", "[report][--clock][off-cpu][--strip-dirs]"),
    ("report unus\t", "[report][unusual name.evp]"),
    ("info othe\t", "[info][other.evp]"),
    ("annotate my\t", "[annotate][my_script.evp]"),
    ("run my_script.p\t", "[run][my_script.py]"),
    ("run --on-full dr\t", "[run][--on-full][drop]"),
    ("completion fi\t", "[completion][fish]"),
    ("hel\trep\t", "[help][report]"),
]


def read_until(terminal, pattern, seconds):
    """The match, or what the shell has written by then."""
    text, end = "", time.monotonic() + seconds
    while time.monotonic() < end:
        if select.select([terminal], [], [], 0.2)[0]:
            try:
                text += os.read(terminal, 65536).decode("utf-8", "replace")
            except OSError:
                break
        found = re.search(pattern, text)
        if found:
            return found, text
    return None, text


def main(shell, evprof):
    command, script = START[shell]
    with open("completion", "wb") as file:
        subprocess.run([evprof, "completion", shell], stdout=file, check=True)
    with open("start", "w") as file:
        file.write(script + "echo REA''DY\n")
    for name in ("unusual name.evp", "other.evp", "otherwise.txt", "my_script.py", "my_script.evp"):
        open(name, "w").close()
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(TERM="vt100", PS1="$ ", HOME=os.getcwd(), LC_ALL="C.UTF-8")
        os.execvp(command[0], command)
    status = 0
    os.write(terminal, b"source ./start\r")
    ready, text = read_until(terminal, r"READY", 60)
    if not ready:
        sys.exit("%s does not start: %r" % (shell, text))
    for typed, wanted in TYPED:
        os.write(terminal, ("evprof " + typed + "\r").encode())
        found, text = read_until(terminal, r"GOT<(.*?)>\r?\n", 30)
        words = found.group(1) if found else None
        if words != wanted:
            print("%s: %r is %r, not %r: %r" % (shell, typed, words, wanted, text))
            status = 1
            os.write(terminal, b"\x03")
            read_until(terminal, r"$^", 1)
    print("%s: %d lines" % (shell, len(TYPED)))
    os.write(terminal, b"exit\r")
    os.close(terminal)
    os.waitpid(child, 0)
    return status


sys.exit(main(*sys.argv[1:]))
