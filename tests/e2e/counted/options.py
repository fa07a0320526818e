"""argparse with sub-commands and errors; logging with handlers, filters and a formatter."""
import argparse
import io
import logging


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise ValueError(message)


class Odd(logging.Filter):
    def filter(self, record):
        return record.args[0] % 2 == 1 if record.args else True


def positive(text):
    value = int(text)
    if value <= 0:
        raise argparse.ArgumentTypeError("not positive")
    return value


def parser():
    top = Parser(prog="tool", description="A tool.")
    top.add_argument("-v", "--verbose", action="count", default=0)
    commands = top.add_subparsers(dest="command")
    add = commands.add_parser("add", help="adds")
    add.add_argument("values", nargs="+", type=positive)
    add.add_argument("--kind", choices=["a", "b"], default="a")
    other = commands.add_parser("other")
    group = other.add_mutually_exclusive_group()
    group.add_argument("-x", action="store_true")
    group.add_argument("-y", action="store_const", const=4)
    return top


def attempts():
    results = []
    for words in (["add", "1", "2", "--kind", "b"], ["-vv", "other", "-x"], ["add", "0"], ["add", "1", "--kind", "c"],
                  ["other", "-x", "-y"], ["add"]):
        try:
            results.append(vars(parser().parse_args(words)))
        except ValueError as error:
            results.append(str(error))
    return results, len(parser().format_help())


def logs():
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s %(message)s"))
    handler.addFilter(Odd())
    logger = logging.getLogger("counted.options")
    logger.propagate = False
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    for i in range(20):
        logger.info("number %d", i)
        logger.debug("not shown %d", i)
    try:
        int("x")
    except ValueError:
        logger.exception("failed")
    logger.removeHandler(handler)
    return len(stream.getvalue())


def main():
    return attempts(), logs()
