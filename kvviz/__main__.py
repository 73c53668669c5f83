"""The command line: ``python -m kvviz nll --policy streaming:budget=256 --text FILE --json``.

JSON goes to standard output, progress and notes to standard error; bad input ends with exit status 2 and one
sentence. Positions, layers and heads count from 0.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from kvviz import commands
from kvviz.experiment import SETUP_PARSERS, Setup
from kvviz.models import DEFAULT_MODEL, ModelError


class Parser(argparse.ArgumentParser):
    """argparse that answers bad input with one sentence instead of the usage block."""

    def error(self, message: str) -> NoReturn:
        program = self.prog.replace("kvviz", "python -m kvviz", 1)
        raise ValueError(f"{message} ({program} --help lists the options)")


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
    add_command(menu, "policies", commands.policies, "list the policies with their knobs and sources")
    for name, function, what in (
        ("nll", commands.nll, "how well the model predicts a text under a setup"),
        ("keep", commands.keep, "which positions one KV head holds after each step"),
        ("attention", commands.attention, "sink mass, entropy and mean distance of every layer and query head"),
    ):
        command = add_command(menu, name, function, what)
        add_setup_options(command)
        add_text_options(command)
        if name == "keep":
            command.add_argument("--layer", type=int, default=0, metavar="L")
            command.add_argument("--head", type=int, default=0, metavar="H", help="KV head")
        if name == "attention":
            command.add_argument("--sinks", type=int, default=4, metavar="S", help="first positions counted as sinks")
    add_generate_options(add_command(menu, "generate", commands.generate, "let the model write under a setup"))
    return parser


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
    command.add_argument("--text", required=True, metavar="FILE", help="UTF-8 text; - reads standard input")
    command.add_argument("--tokens", type=int, default=None, metavar="N", help="only the first N tokens")
    command.add_argument("--prompt-tokens", type=int, default=None, metavar="P", help="default: half the tokens")
    command.add_argument("--score-from", type=int, default=1, metavar="K", help="first predicted token that counts")
    command.add_argument("--block", type=int, default=256, metavar="R", help="rows computed at once")
    command.add_argument("--stepwise", action="store_true", help="blocks of one, with tensors that really shrink")


def add_generate_options(command: argparse.ArgumentParser) -> None:
    add_setup_options(command)
    prompt = command.add_mutually_exclusive_group(required=True)
    prompt.add_argument("--prompt", metavar="TEXT")
    prompt.add_argument("--token-ids", metavar="FILE", help="a JSON list of token numbers; - reads standard input")
    command.add_argument("--max-new-tokens", type=int, required=True, metavar="N")
    command.add_argument("--temperature", type=float, default=0.0, help="0 = greedy")
    command.add_argument("--top-p", type=float, default=1.0)
    command.add_argument("--seed", type=int, default=0)


if __name__ == "__main__":
    sys.exit(main())
