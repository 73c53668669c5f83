"""The run that nll, keep and attention look at, with the options they share."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from kvviz.cli import inputs
from kvviz.cli.inputs import (
    Check,
    check_all,
    check_block,
    check_least,
    check_prompt,
    encoded,
    read_text,
    say_if_short,
    say_notes,
    say_share,
    setup_of,
)
from kvviz.cli.options import add_setup_options, add_text_options

if TYPE_CHECKING:
    from kvviz.run.trace import Trace


def add_options(command: argparse.ArgumentParser) -> None:
    add_setup_options(command)
    add_text_options(command)


def replayed(arguments: argparse.Namespace, *checks: Check, **measures: Any) -> Trace:
    """The run that nll, keep and attention look at, after the checks of all and of the one command."""
    checks = (check_prompt, *checks)
    setup = setup_of(arguments)
    check_least(arguments)
    check_block(arguments)
    if arguments.tokens is not None:  # there will be no more than these, and none of the checks is easier with fewer
        check_all(checks, arguments, arguments.tokens)
    text = read_text(arguments.text)
    loaded = inputs.model_for(arguments, setup)  # slow, and so the last of what may be refused
    from kvviz.run.replay import BLOCK, replay

    ids = encoded(loaded, text, arguments.tokens or sys.maxsize)
    check_all(checks, arguments, len(ids))
    say_if_short(len(ids), arguments.tokens)
    inputs.refuse_long(loaded.model, [(setup, len(ids))])
    trace = replay(
        loaded.model,
        ids,
        setup,
        prompt_tokens=arguments.prompt_tokens,
        block=1 if arguments.stepwise else arguments.block or BLOCK,
        progress=say_share,
        **measures,
    )
    say_notes(trace)
    return trace
