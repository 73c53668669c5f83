"""``python -m kvviz report``: what a setup costs on this machine, and what it still finds."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from kvviz.choices.texts import LONG_TEXT, PRESETS
from kvviz.cli import inputs
from kvviz.cli.inputs import check_least, say, setup_of
from kvviz.cli.options import add_setup_options, whole

ABOUT = "what a setup costs on this machine (time, memory, loss), and what it still finds"


def add_options(command: argparse.ArgumentParser) -> None:
    add_setup_options(command)
    command.add_argument("--tokens", type=whole, required=True, metavar="N", help="of the prompt")
    command.add_argument("--max-new-tokens", type=whole, required=True, metavar="M")
    command.add_argument("--repeats", type=whole, default=3, metavar="R", help="runs that are timed, default 3")


def answer(arguments: argparse.Namespace) -> dict[str, Any]:
    from kvviz.analysis.report import check_report, refuse_beyond, report_work, run_report

    setup = setup_of(arguments)
    check_least(arguments)
    check_report(arguments.tokens, arguments.max_new_tokens, arguments.repeats)
    if setup.policy.recomputes:
        raise ValueError("recompute has no cache to report on; choose another policy.")
    loaded = inputs.model_for(arguments, setup)
    from kvviz.models import tokens

    def encode(text: str) -> list[int]:
        return tokens.encode(loaded.tokenizer, text, sys.maxsize)

    filler = encode(PRESETS[LONG_TEXT].text())
    if arguments.tokens > len(filler):
        raise ValueError(f"--tokens {arguments.tokens} is more than the {len(filler)} of the language reference.")
    asked = arguments.tokens, arguments.max_new_tokens
    refuse_beyond(loaded.model, setup, *asked)
    inputs.refuse_work(loaded.model, report_work(setup, *asked, arguments.repeats))
    return run_report(
        loaded,
        setup,
        ids=filler[: arguments.tokens],
        max_new_tokens=arguments.max_new_tokens,
        repeats=arguments.repeats,
        encode=encode,
        filler=filler,
        tell=say,
    )
