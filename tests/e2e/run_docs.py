"""Runs the commands of documents and compares what they print: `run_docs.py [--write] [--wheel WHEEL] BUILD PYTHON DOCUMENT...`.

The commands find the programs of the folder BUILD, "python" and "python3" for PYTHON, and the package evprof, as after
`pip install evprof`. With WHEEL they have a virtual environment of PYTHON, and pip an index with that wheel; a document
that begins with `pip install` has no evprof before. Without WHEEL nothing is installed by pip. PYTHONPATH has other
packages. HOME is the directory in which the commands run.

A fenced block of a language and a file's name (```python shop.py) is that file. A block of `console` has commands, each
after "$ " (continued lines after "> "), and below each what it prints. All commands of a document run in one shell, in a
new directory. Two outputs have the same shape if each line of the one is a line of the other, in any order, where all
numbers, with their units, are the same, and so is any amount of white space. A line "..." stands for any lines, and
"..." at the end of a line for its rest. Lines
of the summary of `evprof run` are not compared: which functions it names depends on the machine. A command may fail only
if "$ echo $?" comes next.

Blocks named "In [1]" and so on are the cells of a notebook, which is executed after the commands; a cell's error is one
of the document. Of a block of `yaml`, each step (`- run: COMMAND`, or a line of `script:`) is run, and has to end well. A
block of `text` has no commands. Other blocks, and indented ones, are refused: nobody would run what they have.

Of a man page, the lines of EXAMPLES are the commands; what they print is not compared. All commands find a program app.py.

NOT_RUN has the commands that are not run. --write puts what the commands print into the document.
"""
import json
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

#: (document, command without its comment): why it is not run, and what tries it.
NOT_RUN = {
    ("README.md", "make demo"): "installs packages of the system; test_docs.c runs its program",
    ("README.md", "make test"): "is what runs this",
    ("install.md", "pip install evprof-0.2.tar.gz"): "pip fetches hatchling for it; release_check.sh builds the sdist without",
    ("install.md", "make install PREFIX=/usr/local"): "would change this system; test_install.c, with DESTDIR",
    ("install.md", "make deb"): "compiles for minutes; test_packages.c",
    ("install.md", "make rpm"): "compiles for minutes; test_packages.c",
    ("install.md", "apt install ./dist/deb/*.deb"): "would change this system; try_packages.sh installs them in a root of its own",
    ("install.md", "source <(evprof completion zsh)"): "a line of zsh; test_completion.c",
    ("install.md", "evprof completion fish | source"): "a line of fish; test_completion.c",
    ("install.md", "cp dist/evprof-0.2-*_x86_64.whl tools/packaging/container"): "changes the tree; try_image.sh does it elsewhere",
    ("install.md", "docker build -t evprof-sidecar tools/packaging/container"): "wants Docker; try_image.sh, with buildah",
    ("budget.md", "EVPROF_TEST_ALL=1 sh tests/interpreters/packages.sh"): "fetches hundreds of MB; make test calls it without",
    ("budget.md", "tests/bench/run --section budget --python 3.13 --write-docs"): "takes an hour; nothing tries it",
    ("growth.md", "tests/bench/run --section growth --python 3.11 --python 3.13 --write-docs"): "takes ten minutes; nothing tries it",
    ("peers.md", "make bench-peers"): "takes two hours; nothing tries it",
    ("peers.md", "tests/bench/run --section peers --python 3.13 --program richards --peer \"evprof, calls\" --peer trace0"): "the same",
    ("performance.md", "make && make bench"): "takes half an hour; nothing tries it",
    ("performance.md", "tests/bench/run --quick"): "takes minutes and a quiet machine; nothing tries it",
    ("performance.md", "tests/bench/run --python 3.13 --program tokens --rounds 15"): "the same",
    ("performance.md", "tests/bench/run --instructions"): "the same",
    ("performance.md", "tests/bench/run --write-docs"): "the same",
    ("performance.md", "tests/bench/run --add --python 3.8"): "the same",
    ("performance.md", "tests/bench/run --again --write-docs"): "changes the document; nothing tries it",
    ("evprof-collector.1", "systemd-sysusers PREFIX/lib/sysusers.d/evprof.conf"): "would change this system; try_packages.sh",
    ("evprof-collector.1", "systemctl enable --now evprof-collector.socket"): "wants systemd as pid 1; try_packages.sh enables it",
    ("evprof-collector.1", "EVPROF_SOCKET=/run/evprof/collector.sock LD_PRELOAD=/usr/local/lib/evprof/libevprof.so python app.py"):
        "wants the daemon of this system; the next example has one of its own",
}

NUMBER = r"(?:(?<!\S)[+-])?\d[\d.,:/%x]*(?:\s?(?:[numkKMGT]?i?[sB]|[kMGT]|%|bytes)\b)?"
TOKEN = re.compile(r"(?P<white>\s+)|(?P<number>%s)|(?P<bar>[#=█▏▎▍▌▋▊▉-]{2,})" % NUMBER)


def too_long(signum, frame):
    raise TimeoutError("a command takes more than %d seconds" % SECONDS_PER_COMMAND)


class Block:
    """A fenced block: its lines are lines[first:last] of the document."""

    def __init__(self, info, first, last):
        self.language, _, self.file = info.strip().partition(" ")
        self.first, self.last = first, last

    def is_file(self):
        return self.file and not self.is_cell()

    def is_cell(self):
        return self.file.startswith("In [")


def blocks_of(lines):
    fence, first, info = None, 0, ""
    for number, line in enumerate(lines):
        mark = re.match(r"(```+)(.*)", line)
        if fence is None and mark:
            fence, info, first = mark.group(1), mark.group(2), number + 1
        elif fence is not None and line.rstrip() == fence:
            block = Block(info, first, number)
            if block.language not in ("console", "text", "yaml") and not block.file:
                sys.exit("line %d: a block of %r that nobody runs" % (first, info))
            yield block
            fence = None
        elif fence is None and re.match(r"    |\t", line) and not lines[number - 1].strip():
            sys.exit("line %d: an indented block, which nobody runs" % (number + 1))
    if fence is not None:
        sys.exit("a block at line %d has no end" % first)


def steps_of(lines, block):
    """The commands of a pipeline."""
    script = False
    for line in lines[block.first:block.last]:
        step = re.match(r" *- run: (.*)", line) or (script and re.match(r" *- (.*)", line))
        script = line.strip() == "script:" or (script and line.lstrip().startswith("- "))
        if step:
            yield step.group(1)


class Listed:
    """The commands of a document that NOT_RUN has."""

    def __init__(self, path):
        self.name = os.path.basename(path)
        self.left = {command for document, command in NOT_RUN if document == self.name}

    def has(self, command):
        command = re.split(r"\s+#\s", command)[0].strip()
        self.left.discard(command)
        return (self.name, command) in NOT_RUN

    def wrong(self):
        """The number of entries whose command is not in the document."""
        for command in self.left:
            print("%s: NOT_RUN has a command that is not there: %s" % (self.name, command))
        return len(self.left)


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
    shell, listed, ran, wrong = Shell(directory, environment), Listed(path), 0, 0
    try:
        for command in examples_of(path):
            if listed.has(command):
                continue
            status, printed = shell.run(command)
            ran += 1
            if status:
                print("%s: $ %s\n    it fails with status %d: %s" % (path, command, status, "\n    ".join(printed)))
                wrong += 1
    finally:
        shell.end()
    return ran, wrong + listed.wrong()


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


def in_bin(folder, name, target):
    os.symlink(os.path.abspath(target), os.path.join(folder, name))


def put_package(folder, build):
    """Makes in the folder what pip puts into an environment. Returns the folders of commands and of modules."""
    here = os.path.dirname(os.path.abspath(__file__))
    package = os.path.join(here, "..", "..", "tools", "python", "evprof")
    commands, modules = os.path.join(folder, "bin"), os.path.join(folder, "modules", "evprof")
    for made in (commands, os.path.join(modules, "_bin")):
        os.makedirs(made)
    for name in os.listdir(package):
        in_bin(modules, name, os.path.join(package, name))
    for name in ("evprof", "evprof-collector", "evprof-symbols", "libevprof.so", "libevprof-reader.so"):
        in_bin(os.path.join(modules, "_bin"), name, os.path.join(build, name))
    for name in ("evprof", "evprof-collector"):
        in_bin(commands, name, os.path.join(build, name))
    return commands, os.path.dirname(modules)


def put_pytest(folder, python):
    """The command, as pip writes it, where the package is among those of PYTHONPATH."""
    path = os.path.join(folder, "pytest")
    with open(path, "w") as file:
        file.write("#!%s\nimport sys\nfrom pytest import console_main\nsys.exit(console_main())\n" % python)
    os.chmod(path, 0o755)


def environment_of(folder, build, python, wheel, begins_with_pip):
    """The variables with which the commands find python, evprof and, with a wheel, pip."""
    path, modules = [], [one for one in os.environ.get("PYTHONPATH", "").split(os.pathsep) if one]
    variables = dict(os.environ, COLUMNS="100", PYTHONDONTWRITEBYTECODE="1", NO_COLOR="1", HOME=os.path.join(folder, "work"))
    commands = os.path.join(folder, "python")
    if wheel:
        subprocess.run([python, "-m", "venv", commands], check=True)
        commands = os.path.join(commands, "bin")
        os.makedirs(os.path.join(folder, "work", "dist"))
        in_bin(os.path.join(folder, "work", "dist"), os.path.basename(wheel), wheel)
        variables.update(PIP_NO_INDEX="1", PIP_FIND_LINKS=os.path.join(folder, "work", "dist"), PIP_QUIET="1",
                         PIP_DISABLE_PIP_VERSION_CHECK="1")
    else:
        os.mkdir(commands)
        for name in ("python", "python3"):
            in_bin(commands, name, python)
    put_pytest(commands, os.path.join(commands, "python"))
    path.append(commands)
    if not (wheel and begins_with_pip):
        package = put_package(folder, build)
        path.insert(0, package[0])
        modules.insert(0, package[1])
    variables.update(PATH=os.pathsep.join(path + [os.environ["PATH"]]), PYTHONPATH=os.pathsep.join(modules))
    return variables


class Shell:
    def __init__(self, directory, environment):
        self.directory = directory
        self.process = subprocess.Popen(
            ["bash", "--norc"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=directory,
            env=environment, universal_newlines=True, start_new_session=True, errors="replace")

    def run(self, command):
        """(status, lines)"""
        # Who reads has started the collector by the time of the next line.
        socket = re.search(r"--socket (\S+).*&$", command)
        if socket:
            command += "\nfor evprof_wait in {1..300}; do [ -S %s ] && break; sleep 0.1; done" % socket.group(1)
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


NOTEBOOK = """
import json, os, sys
import nbformat
from nbclient import NotebookClient
from traitlets.config import Config
os.makedirs("jupyter/kernels/this")
with open("jupyter/kernels/this/kernel.json", "w") as file:
    json.dump({"argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"], "display_name": "this",
               "language": "python"}, file)
os.environ["JUPYTER_PATH"] = os.path.abspath("jupyter")
config = Config()
config.KernelManager.transport = "ipc"
notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in json.load(sys.stdin)])
NotebookClient(notebook, kernel_name="this", timeout=50, startup_timeout=50, config=config).execute()
print(*(("html" if "text/html" in output.get("data", {}) else output.output_type) for cell in notebook.cells
        for output in cell.outputs))
"""


def run_notebook(path, cells, directory, environment):
    """The number of cells that were run, and of those that failed."""
    try:
        done = subprocess.run(["python", "-c", NOTEBOOK], input=json.dumps(cells), cwd=directory, env=environment, timeout=180,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
        status, printed = done.returncode, done.stdout
    except subprocess.TimeoutExpired:
        status, printed = 1, "the notebook takes more than 180 seconds"
    if "No module named 'nb" in printed:
        print("%s: no packages for notebooks here" % path)
        return 0, 0
    if status or "html" not in printed:
        print("%s: the notebook fails, or shows no page\n%s" % (path, printed))
        return len(cells), 1
    return len(cells), 0


class Document:
    """Runs one, as the module's docstring says."""

    def __init__(self, path, directory, environment, has_pip):
        with open(path, encoding="utf-8") as file:
            self.lines = file.read().split("\n")
        self.path, self.directory, self.environment, self.has_pip = path, directory, environment, has_pip
        self.blocks = list(blocks_of(self.lines))
        if any(block.file.startswith("app/") for block in self.blocks):
            os.remove(os.path.join(directory, "app.py"))  # it would be found in place of the package
        self.listed = Listed(path)
        self.ran = self.wrong = 0
        self.written = []

    def text(self, block):
        return "\n".join(self.lines[block.first:block.last]) + "\n"

    def run(self, write):
        """The number of commands that were run, and of those whose output differs."""
        shell = Shell(self.directory, self.environment)
        try:
            for block in self.blocks:
                if block.is_file():
                    target = os.path.join(self.directory, block.file)
                    os.makedirs(os.path.dirname(target), exist_ok=True)
                    with open(target, "w", encoding="utf-8") as file:
                        file.write(self.text(block))
                elif block.language == "console":
                    self.run_commands(shell, commands_of(self.lines, block), write)
                elif block.language == "yaml":
                    for step in steps_of(self.lines, block):
                        self.run_command(shell, step, block.first, block.first, False, None)
        finally:
            shell.end()
        cells = [self.text(block).rstrip("\n") for block in self.blocks if block.is_cell()]
        if cells:
            ran, wrong = run_notebook(self.path, cells, self.directory, self.environment)
            self.ran, self.wrong = self.ran + ran, self.wrong + wrong
        if write:
            self.write()
        return self.ran, self.wrong + self.listed.wrong()

    def run_commands(self, shell, commands, write):
        for i, (command, first, last) in enumerate(commands):
            asked = i + 1 < len(commands) and commands[i + 1][0] == "echo $?"
            printed = self.run_command(shell, command, first, last, asked, None if write else self.lines[first:last])
            if write and printed is not None and not any(
                    line.endswith("...") and line not in printed for line in self.lines[first:last]):
                self.written.append((first, last, printed))

    def run_command(self, shell, command, first, last, may_fail, wanted):
        """What it printed; None: it was not run. Without wanted lines only its status counts."""
        if self.listed.has(command):
            return None
        if command.startswith("pip install") and not self.has_pip:
            print("%s:%d: no wheel, not run: %s" % (self.path, first, command))
            return None
        status, printed = shell.run(command)
        self.ran += 1
        found = differences(wanted, printed) if wanted is not None else []
        if status and not may_fail:
            found += ["it fails with status %d; \"$ echo $?\" does not follow" % status]
            found += ["it prints:        " + line for line in printed if wanted is None]
        if found:
            print("%s:%d: $ %s" % (self.path, first, command))
            print("\n".join("    " + line for line in found))
            self.wrong += 1
        return printed

    def write(self):
        for first, last, printed in reversed(self.written):
            self.lines[first:last] = printed
        with open(self.path, "w", encoding="utf-8") as file:
            file.write("\n".join(self.lines))


def begins_with_pip(path):
    with open(path, encoding="utf-8") as file:
        found = re.search(r"^\$ (.*)", file.read(), re.MULTILINE)
    return bool(found) and found.group(1).startswith("pip install")


def main(arguments):
    signal.signal(signal.SIGALRM, too_long)
    write, wheel = arguments[:1] == ["--write"], None
    arguments = arguments[write:]
    if arguments[:1] == ["--wheel"]:
        wheel, arguments = os.path.abspath(arguments[1]), arguments[2:]
    build, python, *paths = arguments
    wrong = 0
    for path in paths:
        with tempfile.TemporaryDirectory() as folder:
            directory = os.path.join(folder, "work")
            os.mkdir(directory)
            with open(os.path.join(directory, "app.py"), "w", encoding="utf-8") as file:
                file.write(APP)
            environment = environment_of(folder, build, python, wheel, begins_with_pip(path))
            if path.endswith(".md"):
                ran, differ = Document(path, directory, environment, bool(wheel)).run(write)
            else:
                ran, differ = run_examples(path, directory, environment)
        print("%s: %d commands, %d differ" % (path, ran, differ))
        wrong += differ
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
