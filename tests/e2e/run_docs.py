"""Runs the commands of a document and compares what they print: `run_docs.py [--write] BUILD PYTHON DOCUMENT...`.

The commands find the programs of the folder BUILD, "python" and "python3" for PYTHON, and the package evprof, as after
`pip install evprof`.

A fenced block of a language and a file's name (```python shop.py) is that file. A block of `console` has commands, each
after "$ " (continued lines after "> "), and below each what it prints. All commands of a document run in one shell, in a
new directory. Two outputs have the same shape if each line of the one is a line of the other, in any order, where all
numbers, with their units, are the same, and so is any amount of white space. A line "..." stands for any lines, and
"..." at the end of a line for its rest. Lines
of the summary of `evprof run` are not compared: which functions it names depends on the machine. A command may fail only
if "$ echo $?" comes next.

Of a man page, the lines of EXAMPLES are the commands; what they print is not compared. They find a program app.py.

A comment <!-- tested by NAME --> before a block of `console` says that a test of that name tries it. --write puts what
the commands print into the document.
"""
import os
import re
import signal
import subprocess
import sys
import tempfile

HOME = "/srv/demo"  # stands for the directory in which the commands run
SECONDS_PER_COMMAND = 60
END = "-- end of a command --"
SUMMARY = "evprof:   "

NUMBER = r"(?:(?<!\S)[+-])?\d[\d.,:/%x]*(?:\s?(?:[numkKMGT]?i?[sB]|%|bytes)\b)?"
TOKEN = re.compile(r"(?P<white>\s+)|(?P<number>%s)|(?P<bar>[#=█▏▎▍▌▋▊▉-]{2,})" % NUMBER)


def too_long(signum, frame):
    raise TimeoutError("a command takes more than %d seconds" % SECONDS_PER_COMMAND)


class Block:
    """A fenced block: its lines are lines[first:last] of the document."""

    def __init__(self, words, first, last, tested_by):
        self.words, self.first, self.last, self.tested_by = words, first, last, tested_by


def blocks_of(lines):
    fence = first = None
    words, tested_by = [], None
    for number, line in enumerate(lines):
        mark = re.match(r"(```+)(.*)", line)
        if fence is None and mark:
            fence, words, first = mark.group(1), mark.group(2).split(), number + 1
        elif fence is not None and line.rstrip() == fence:
            yield Block(words, first, number, tested_by)
            fence = tested_by = None
        elif fence is None and line.strip():
            comment = re.match(r"<!-- tested by (.+) -->", line)
            tested_by = comment.group(1) if comment else None
    if fence is not None:
        sys.exit("a block at line %d has no end" % first)


#: For the examples of the man pages.
APP = """import threading


def query(number):
    return {"number": number}


def main():
    for number in range(10):
        query(number)
    try:
        int("three")
    except ValueError:
        pass


thread = threading.Thread(target=main)
thread.start()
thread.join()
"""


def examples_of(path):
    """The commands of a man page: those of a paragraph may be several lines, joined by a backslash."""
    with open(path, encoding="utf-8") as file:
        section = re.search(r"^\.SH EXAMPLES\n\.nf\n(.*?)^\.fi", file.read(), re.MULTILINE | re.DOTALL)
    text = section.group(1).replace("\\e\n", "\\\n").replace("\\-", "-")
    return [command for command in re.sub(r"\\\n\s*", "", text).split("\n") if command and not command.startswith(".")]


def run_examples(path, directory, environment):
    with open(os.path.join(directory, "app.py"), "w", encoding="utf-8") as file:
        file.write(APP)
    shell, wrong, commands = Shell(directory, environment), 0, examples_of(path)
    try:
        for command in commands:
            status, printed = shell.run(command)
            if status:
                print("%s: $ %s\n    it fails with status %d: %s" % (path, command, status, "\n    ".join(printed)))
                wrong += 1
    finally:
        shell.end()
    return len(commands), wrong


def commands_of(lines, block):
    """[(command, its first line of output, the line behind its output)]"""
    found = []
    for number in range(block.first, block.last):
        line = lines[number]
        if line.startswith("$ "):
            found.append([line[2:], number + 1, block.last])
            if len(found) > 1:
                found[-2][2] = number
        elif line.startswith("> ") and found and found[-1][1] == number:
            found[-1][0] += "\n" + line[2:]
            found[-1][1] += 1
        elif not found:
            sys.exit("line %d: output before the first command" % (number + 1))
    return found


def pattern_of(line):
    pattern, at = "", 0
    for token in TOKEN.finditer(line):
        pattern += re.escape(line[at:token.start()])
        pattern += {"white": r"\s+", "number": r"\s*" + NUMBER, "bar": r"[#=█▏▎▍▌▋▊▉-]+"}[token.lastgroup]
        at = token.end()
    rest = line[at:]
    return re.compile(pattern + (re.escape(rest[:-3]) + ".*" if rest.endswith("...") else re.escape(rest) + r"\s*"))


def differences(wanted, printed):
    # Until 3.8 a script's path is as it was given.
    wanted, printed = [[line.replace(HOME + "/", "") for line in lines if line.strip() and not line.startswith(SUMMARY)]
                       for lines in (wanted, printed)]
    missing, left = [], list(printed)
    for line in wanted:
        if line.strip() == "...":
            continue
        pattern = pattern_of(line.strip())
        match = next((other for other in left if pattern.fullmatch(other.strip())), None)
        if match is None:
            missing.append(line)
        else:
            left.remove(match)
    if any(line.strip() == "..." for line in wanted):
        left = []
    return ["the document has: " + line for line in missing] + ["it prints:        " + line for line in left]


def installed(folder, build, python):
    """Makes in the folder what pip puts into an environment. Returns the variables with which it is found."""
    here = os.path.dirname(os.path.abspath(__file__))
    package = os.path.join(here, "..", "..", "tools", "python", "evprof")
    commands, modules = os.path.join(folder, "bin"), os.path.join(folder, "modules", "evprof")
    for made in (commands, os.path.join(modules, "_bin")):
        os.makedirs(made)
    for name in os.listdir(package):
        os.symlink(os.path.abspath(os.path.join(package, name)), os.path.join(modules, name))
    for name in ("evprof", "evprof-collector", "evprof-symbols", "libevprof.so", "libevprof-reader.so"):
        os.symlink(os.path.abspath(os.path.join(build, name)), os.path.join(modules, "_bin", name))
    for name in ("evprof", "evprof-collector"):
        os.symlink(os.path.abspath(os.path.join(build, name)), os.path.join(commands, name))
    for name in ("python", "python3"):
        os.symlink(os.path.abspath(python), os.path.join(commands, name))
    return dict(os.environ, PATH=commands + ":" + os.environ["PATH"], PYTHONPATH=os.path.dirname(modules), COLUMNS="100",
                PYTHONDONTWRITEBYTECODE="1")


class Shell:
    def __init__(self, directory, environment):
        self.directory = directory
        self.process = subprocess.Popen(
            ["bash", "--norc"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=directory,
            env=environment, universal_newlines=True, start_new_session=True, errors="replace")

    def run(self, command):
        """(status, lines)"""
        self.process.stdin.write("%s\n{ evprof_status=$?; printf '\\n%s %%d\\n' $evprof_status; (exit $evprof_status); } 2>&1\n"
                                 % (command, END))
        self.process.stdin.flush()
        lines = []
        signal.alarm(SECONDS_PER_COMMAND)
        for line in self.process.stdout:
            if line.startswith(END):
                signal.alarm(0)
                while lines and not lines[-1].strip():
                    lines.pop()
                return int(line[len(END):]), lines
            lines.append(line.rstrip("\n").replace(os.path.realpath(self.directory), HOME))
        sys.exit("the shell has ended after: " + command)

    def end(self):
        try:
            os.killpg(self.process.pid, signal.SIGTERM)
        except ProcessLookupError:
            pass
        self.process.wait()


def is_known(name):
    """Whether a test has this name: FILE of tests/e2e, or FILE:SCENARIO."""
    file, _, scenario = name.partition(":")
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), file + ".c")
    return os.path.exists(path) and scenario in open(path, encoding="utf-8").read()


def run_document(path, directory, environment, write):
    """The number of commands that were run, and of those whose output differs."""
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    blocks, shell, ran, wrong, written = list(blocks_of(lines)), Shell(directory, environment), 0, 0, []
    try:
        for block in blocks:
            if len(block.words) == 2 and "=" not in block.words[1]:
                with open(os.path.join(directory, block.words[1]), "w", encoding="utf-8") as file:
                    file.write("\n".join(lines[block.first:block.last]) + "\n")
            if block.words[:1] != ["console"]:
                continue
            if block.tested_by:
                if not is_known(block.tested_by):
                    sys.exit("%s:%d: no test is named %s" % (path, block.first, block.tested_by))
                continue
            commands = commands_of(lines, block)
            for i, (command, first, last) in enumerate(commands):
                status, printed = shell.run(command)
                ran += 1
                asked = i + 1 < len(commands) and commands[i + 1][0] == "echo $?"
                found = differences(lines[first:last], printed)
                if status and not asked:
                    found.append("it fails with status %d; \"$ echo $?\" does not follow" % status)
                if found and not write:
                    print("%s:%d: $ %s" % (path, first, command))
                    print("\n".join("    " + line for line in found))
                    wrong += 1
                if write and not any(line.endswith("...") and line not in printed for line in lines[first:last]):
                    written.append((first, last, printed))
    finally:
        shell.end()
    for first, last, printed in reversed(written):
        lines[first:last] = printed
    if write:
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(lines))
    return ran, wrong


def main(arguments):
    signal.signal(signal.SIGALRM, too_long)
    write = arguments[:1] == ["--write"]
    build, python, *paths = arguments[write:]
    wrong = 0
    for path in paths:
        with tempfile.TemporaryDirectory() as folder:
            directory = os.path.join(folder, "work")
            os.mkdir(directory)
            environment = installed(folder, build, python)
            if path.endswith(".md"):
                ran, differ = run_document(path, directory, environment, write)
            else:
                ran, differ = run_examples(path, directory, environment)
        print("%s: %d commands, %d differ" % (path, ran, differ))
        wrong += differ or not ran
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
