"""The command line: ``python -m kvviz nll --policy streaming:budget=256 --text FILE --json``.

JSON goes to standard output, progress and notes to standard error; bad input ends with exit status 2 and one
sentence. Positions, layers and heads count from 0.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from kvviz import commands
from kvviz.experiment import SETUP_PARSERS, Setup
from kvviz.knobs import suggestion
from kvviz.memory import command as memory
from kvviz.models import DEFAULT_MODEL, ModelError

COMMANDS = {
    "policies": (commands.policies, "list the policies with their knobs and sources"),
    "nll": (commands.nll, "how well the model predicts a text under a setup"),
    "keep": (commands.keep, "which positions one KV head holds after each step"),
    "attention": (commands.attention, "sink mass, entropy and mean distance of every layer and query head"),
    "generate": (commands.generate, "let the model write under a setup"),
    "memory": (memory.answer, "bytes of a cache of any model, by the formula; no model is loaded"),
    "reach": (commands.reach, "how many input positions the last token depends on after each layer; needs no model"),
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
        parsed, left_over = super().parse_known_args(args, namespace)
        if left_over:
            self.refuse(left_over[0])
        return parsed, left_over

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
    try:
        arguments = build_parser().parse_args(argv)
        answer = arguments.command(arguments)
    except (ValueError, ModelError) as error:
        print(f"kvviz: {one_line(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    try:
        print(json.dumps(answer) if arguments.json else readable(answer))
        sys.stdout.flush()
    except BrokenPipeError:
        sys.stderr.close()  # the reader has seen enough
    except OSError as error:
        print(f"kvviz: the answer cannot be written: {error.strerror}.", file=sys.stderr)
        return 2
    return 0


def one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def readable(answer: Any) -> str:
    """For eyes instead of programs: one line a field, long lists cut."""
    if isinstance(answer, list):
        return "\n".join(f"{row['name']:12} {row['title']}  [{spelled_knobs(row)}]" for row in answer)
    return "\n".join(f"{name}: {shorten(value)}" for name, value in answer.items())


def spelled_knobs(row: dict[str, Any]) -> str:
    return ", ".join(f"{k['name']}={k['default']}" for k in row["knobs"])


def shorten(value: Any, limit: int = 120) -> str:
    word = json.dumps(value, ensure_ascii=False)
    return word if len(word) <= limit else word[:limit] + " … (--json prints all)"


def build_parser() -> Parser:
    parser = Parser(prog="kvviz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    menu = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=Parser)
    added = {name: add_command(menu, name, function, what) for name, (function, what) in COMMANDS.items()}
    for name in ("nll", "keep", "attention"):
        add_setup_options(added[name])
        add_text_options(added[name])
    added["keep"].add_argument("--layer", type=whole, default=0, metavar="L")
    added["keep"].add_argument("--head", type=whole, default=0, metavar="H", help="KV head")
    added["attention"].add_argument(
        "--sinks", type=whole, default=4, metavar="S", help="first positions counted as sinks"
    )
    add_generate_options(added["generate"])
    memory.add_options(added["memory"], whole)
    add_reach_options(added["reach"])
    return parser


def whole(word: str) -> int:
    """The whole number that ``word`` spells in plain digits; int() takes 1_0 too."""
    digits = word.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 18):
        raise argparse.ArgumentTypeError(f"{word!r} is not a whole number such as 256")
    return int(word)


def number(word: str) -> float:
    """The number that ``word`` spells."""
    try:
        return float(word)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{word!r} is not a number such as 0.7") from None


def add_command(menu: Any, name: str, function: Any, what: str) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = menu.add_parser(name, help=what, description=what)
    command.set_defaults(command=function)
    command.add_argument("--json", action="store_true", help="print JSON")
    return command


def add_setup_options(command: argparse.ArgumentParser) -> None:
    plain = Setup().words()
    for name in SETUP_PARSERS:
        command.add_argument(f"--{name}", default=plain[name], metavar="SPEC", help=f"default {plain[name]}")
    command.add_argument("--model", default=DEFAULT_MODEL, metavar="NAME")
    command.add_argument("--dtype", default=None, help="float32, bfloat16, float16 or float64")
    command.add_argument("--device", default=None, help="cuda, mps or cpu")


def add_text_options(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--text", required=True, metavar="FILE", help="UTF-8, a byte order mark left out; - reads standard input"
    )
    command.add_argument("--tokens", type=whole, default=None, metavar="N", help="only the first N tokens")
    command.add_argument("--prompt-tokens", type=whole, default=None, metavar="P", help="default: half the tokens")
    command.add_argument("--score-from", type=whole, default=1, metavar="K", help="first predicted token that counts")
    command.add_argument("--block", type=whole, default=None, metavar="R", help="rows computed at once, default 256")
    command.add_argument("--stepwise", action="store_true", help="blocks of one, with tensors that really shrink")


def add_generate_options(command: argparse.ArgumentParser) -> None:
    add_setup_options(command)
    prompt = command.add_mutually_exclusive_group(required=True)
    prompt.add_argument("--prompt", metavar="TEXT")
    prompt.add_argument("--token-ids", metavar="FILE", help="a JSON list of token numbers; - reads standard input")
    command.add_argument("--max-new-tokens", type=whole, required=True, metavar="N")
    command.add_argument("--temperature", type=number, default=0.0, metavar="T", help="0 = greedy")
    command.add_argument(
        "--top-p", type=number, default=1.0, metavar="P", help="draw from the likeliest tokens of mass P"
    )
    command.add_argument("--seed", type=whole, default=0, metavar="N")


def add_reach_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--pattern", required=True, metavar="SPEC", help="such as sliding:window=32")
    command.add_argument("--layers", type=whole, required=True, metavar="L", help="layers 1 to L are listed")
    command.add_argument("--tokens", type=whole, required=True, metavar="N", help="the last of N tokens is asked about")


if __name__ == "__main__":
    sys.exit(main())
