"""The command line: ``python -m kvviz nll --policy streaming:budget=256 --text FILE --json``.

JSON goes to standard output, progress and notes to standard error; bad input ends with exit status 2 and one
sentence. Positions, layers and heads count from 0.
"""

from __future__ import annotations

import argparse
import io
import json
import re
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any, NoReturn, Protocol

from kvviz.cli import (
    attention,
    check,
    draft,
    exact,
    generate,
    keep,
    memory,
    needle,
    nll,
    policies,
    reach,
    report,
    share,
    sweep,
)
from kvviz.cli.inputs import RefusedModel, say
from kvviz.knobs import suggestion
from kvviz.models import ModelError


class Command(Protocol):
    """A command: one module of this package."""

    ABOUT: str  # in one line

    def add_options(self, command: argparse.ArgumentParser) -> None: ...

    def answer(self, arguments: argparse.Namespace) -> Any: ...


COMMANDS: dict[str, Command] = {
    "policies": policies,
    "nll": nll,
    "keep": keep,
    "attention": attention,
    "generate": generate,
    "memory": memory,
    "reach": reach,
    "check": check,
    "needle": needle,
    "sweep": sweep,
    "report": report,
    "exact": exact,
    "draft": draft,
    "share": share,
}
# what argparse says, and what a person is told; a message that fits none is told as it is
PLAIN_WORDS = (
    (r"the following arguments are required: COMMAND", f"A command is missing; {suggestion('', COMMANDS)[:-1]}"),
    (r"the following arguments are required: (.*)", r"The command needs \1"),
    (r"one of the arguments (\S+) (\S+) is required", r"The command needs \1 or \2"),
    (r"argument (\S+): expected one argument", r"\1 needs a value, written \1=VALUE where it begins with a dash"),
    (r"argument (\S+): not allowed with argument (\S+)", r"\2 and \1 exclude each other, give only one of them"),
    (r"argument (\S+): ignored explicit argument (.*)", r"\1 takes no value, leave \2 out"),
    (r"argument (\S+): (.*)", r"\1 \2"),  # the sentences of whole() and number()
)


class Parser(argparse.ArgumentParser):
    """argparse without abbreviations, which answers bad input with one sentence instead of the usage block."""

    def __init__(self, **options: Any) -> None:
        # an abbreviation in a script would break, or change its meaning, with the next option added here
        super().__init__(allow_abbrev=False, **options)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse does, but what is left over is refused here, where the options are known."""
        self.refuse_repeated(args or ())
        parsed, left_over = super().parse_known_args(args, namespace)
        if left_over:
            self.refuse(left_over[0])
        return parsed, left_over

    def refuse_repeated(self, words: Sequence[str]) -> None:
        """argparse would let the last of two win without a word."""
        counts = Counter(word.split("=")[0] for word in words)
        for option in (word for action in self._actions for word in action.option_strings):
            if option.startswith("--") and counts[option] > 1:
                raise ValueError(f"{option} is given {counts[option]} times; give it once.")

    def refuse(self, word: str) -> NoReturn:
        if not word.startswith("-"):
            raise ValueError(f"The word {word!r} belongs to no option; leave it out, or quote a value with spaces.")
        options = dict.fromkeys(re.findall(r"--[a-z-]+", self.format_usage()))
        raise ValueError(f"There is no option {word!r}; {suggestion(word, options)}")

    def error(self, message: str) -> NoReturn:
        if wrong := re.match(r"argument COMMAND: invalid choice: '(.*?)'", message):
            raise ValueError(f"There is no command {wrong[1]!r}; {suggestion(wrong[1], COMMANDS)}")
        for pattern, words in PLAIN_WORDS:
            if found := re.fullmatch(pattern, message, re.DOTALL):
                message = found.expand(words)
                break
        program = self.prog.replace("kvviz", "python -m kvviz", 1)
        raise ValueError(f"{message}; `{program} --help` explains.")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; 0, or 2 after a sentence about bad input."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that knows no such sign gets its number
            stream.reconfigure(errors="backslashreplace")
    try:
        arguments = build_parser().parse_args(argv)
        answer = arguments.command(arguments)
    except RefusedModel as error:
        return written(error.answer, arguments.json) or refused(error)
    except (ValueError, ModelError) as error:
        return refused(error)
    except KeyboardInterrupt:
        return 130
    return written(answer, arguments.json)


def refused(error: Exception) -> int:
    say(f"kvviz: {one_line(error)}")
    return 2


def written(answer: Any, as_json: bool) -> int:
    """Write the answer out; 0, or 2 after a sentence where it cannot be."""
    if sys.stdout is None:
        say("kvviz: the answer cannot be written: standard output is closed.")
        return 2
    try:
        print(json.dumps(answer) if as_json else readable(answer))
        sys.stdout.flush()
    except BrokenPipeError:
        if sys.stderr is not None:
            sys.stderr.close()  # the reader has seen enough
    except OSError as error:
        say(f"kvviz: the answer cannot be written: {error.strerror}.")
        return 2
    return 0


def one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def readable(answer: Any) -> str:
    """For eyes instead of programs: one line a field, long lists cut."""
    if isinstance(answer, list):
        return "\n".join(map(line_of, answer))
    return "\n".join(f"{name}: {shorten(value)}" for name, value in answer.items())


def line_of(row: dict[str, Any]) -> str:
    """One row of a list: a policy with its knobs, or fields one after another."""
    if "knobs" in row:
        return f"{row['name']:12} {row['title']}  [{spelled_knobs(row)}]"
    return "  ".join(f"{name}={shorten(value)}" for name, value in row.items())


def spelled_knobs(row: dict[str, Any]) -> str:
    return ", ".join(f"{k['name']}={k['default']}" for k in row["knobs"])


def shorten(value: Any, limit: int = 120) -> str:
    word = json.dumps(value, ensure_ascii=False)
    return word if len(word) <= limit else word[:limit] + " … (--json prints all)"


def build_parser() -> Parser:
    parser = Parser(prog="kvviz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    menu = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=Parser)
    for name, module in COMMANDS.items():
        command: argparse.ArgumentParser = menu.add_parser(name, help=module.ABOUT, description=module.ABOUT)
        command.set_defaults(command=module.answer)
        command.add_argument("--json", action="store_true", help="print JSON")
        module.add_options(command)
    return parser
