"""``python -m kvviz sweep``: the loss of several policies at several budgets, on one text."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from kvviz.analysis.sweep import Row, points_of, swept
from kvviz.choices.setup import SETUP_PARSERS, parse_setup
from kvviz.cli import inputs
from kvviz.cli.inputs import check_all, check_block, check_least, check_prompt, encoded, read_text, say, say_if_short
from kvviz.cli.nll import check_scored
from kvviz.cli.options import add_choice_options, add_model_options, add_text_options, wholes

ABOUT = "the loss and the bytes of several policies at several budgets, on one text"


def add_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--policies", required=True, metavar="LIST", help='such as "streaming:sinks=4;h2o;tova"')
    command.add_argument("--budgets", type=wholes, required=True, metavar="LIST", help="such as 64/128/256")
    add_choice_options(command, [name for name in SETUP_PARSERS if name != "policy"])
    add_model_options(command)
    add_text_options(command)


def answer(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """One row a policy and budget, in that order; seconds are those of the one run."""
    words = {name: getattr(arguments, name) for name in SETUP_PARSERS if name != "policy"}
    points = points_of(arguments.policies.split(";"), arguments.budgets, parse_setup(words))
    check_least(arguments)
    check_block(arguments)
    checks = (check_prompt, check_scored)
    if arguments.tokens is not None:  # there will be no more than these
        check_all(checks, arguments, arguments.tokens)
    text = read_text(arguments.text)
    loaded = inputs.model_for(arguments, points[0].setup)
    for point in points[1:]:
        inputs.refuse_setup(arguments, loaded, point.setup)
    from kvviz.run.refusals import refuse_beyond_trained
    from kvviz.run.replay import checked_prompt

    ids = encoded(loaded, text, arguments.tokens or sys.maxsize)
    check_all(checks, arguments, len(ids))
    say_if_short(len(ids), arguments.tokens)
    for point in points:  # all of them, before the first has taken its time
        refuse_beyond_trained(loaded.model, point.setup, len(ids), checked_prompt(arguments.prompt_tokens, len(ids)))
    inputs.refuse_long(loaded.model, [(point.setup, len(ids)) for point in points])
    rows: list[Row] = []
    for point in points:
        say(f"{len(rows) + 1} of {len(points)}: {point.setup}")
        rows.append(
            swept(
                loaded.model,
                ids,
                point,
                prompt_tokens=arguments.prompt_tokens,
                score_from=arguments.score_from,
                block=1 if arguments.stepwise else arguments.block,
                tell=say,
            )
        )
    return [vars(row) for row in rows]
