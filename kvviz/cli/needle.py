"""``python -m kvviz needle``: does a setup still find what stood somewhere in the text?"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from kvviz.choices.setup import Setup
from kvviz.choices.texts import LONG_TEXT, PRESETS
from kvviz.cli import inputs
from kvviz.cli.inputs import check_least, say_share, setup_of
from kvviz.cli.options import add_setup_options, whole, wholes
from kvviz.knobs import suggestion

ABOUT = "does a setup still find what stood somewhere in the text? a grid of depths and seeds"
DEPTHS = (0, 25, 50, 75, 100)


def add_options(command: argparse.ArgumentParser) -> None:
    add_setup_options(command)
    command.add_argument("--task", required=True, metavar="TASK")
    command.add_argument("--tokens", type=whole, required=True, metavar="N", help="of a prompt, its answer included")
    command.add_argument("--depths", type=wholes, default=DEPTHS, metavar="LIST", help="percent, else 0/25/50/75/100")
    command.add_argument("--seeds", type=whole, default=1, metavar="K", help="prompts at each depth, default 1")


def answer(arguments: argparse.Namespace) -> dict[str, Any]:
    from kvviz.analysis.tasks import TASKS
    from kvviz.analysis.tasks.scoring import check_task, grid

    setup = setup_of(arguments)
    check_least(arguments)
    if arguments.task not in TASKS:
        raise ValueError(f"There is no task {arguments.task!r}; {suggestion(arguments.task, TASKS)}")
    task = TASKS[arguments.task]
    check_task(task, arguments.tokens, arguments.depths, arguments.seeds)
    loaded = inputs.model_for(arguments, setup)
    from kvviz.models import tokens
    from kvviz.run.refusals import refuse_beyond_trained

    def run(chosen: Setup) -> Any:
        return grid(
            loaded.model,
            lambda text: tokens.encode(loaded.tokenizer, text, sys.maxsize),
            filler,
            task,
            chosen,
            tokens=arguments.tokens,
            depths=arguments.depths,
            seeds=arguments.seeds,
            progress=say_share,
        )

    filler = tokens.encode(loaded.tokenizer, PRESETS[LONG_TEXT].text(), sys.maxsize)
    needs_full = task.is_scored and setup != Setup()  # where nothing is asked, nothing is void
    chosen = [setup, Setup()] if needs_full else [setup]
    if needs_full:
        why = "The full cache is asked too, since a task that it fails is void: "
        refuse_beyond_trained(loaded.model, Setup(), arguments.tokens, arguments.tokens, why)
    cells = len(arguments.depths) * arguments.seeds
    inputs.refuse_long(loaded.model, [(one, cells * arguments.tokens) for one in chosen])
    found = run(setup)
    whole_cache = run(Setup()) if needs_full else found
    return {
        "task": task.name,
        "tokens": arguments.tokens,
        "cells": [vars(cell) for cell in found.cells],
        "found": found.found,
        "of": len(found.cells) if task.is_scored else None,
        "interval": found.interval,
        "void": whole_cache.is_void,
    }
