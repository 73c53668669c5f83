"""``python -m kvviz check``: does kvviz compute what the stock model computes, and what works on it?"""

from __future__ import annotations

import argparse
from typing import Any

from kvviz.cli import inputs
from kvviz.cli.inputs import RefusedModel, say
from kvviz.cli.options import add_model_options

ABOUT = "try a model on a few tokens against the stock model: does kvviz run it rightly, and what works on it?"


def add_options(command: argparse.ArgumentParser) -> None:
    add_model_options(command)


def answer(arguments: argparse.Namespace) -> dict[str, Any]:
    """Gaps in nats; exit status 2, with the reason on standard error, where no run of the model may be shown."""
    loaded = inputs.load_model(arguments)
    from kvviz.analysis.trial import trial_of

    trial = trial_of(loaded)
    for kind, answers in (("storage", trial.storages), ("policy", trial.policies)):
        for name, reason in answers.items():
            if reason is not True:
                say(f"{kind} {name}: {reason}")
    found: dict[str, Any] = {
        "model_type": trial.model_type,
        "full_gap": trial.full_gap,
        "stepped_gap": trial.stepped_gap,
        "window_gap": trial.window_gap,
        "allowed_gap": trial.allowed_gap,
        "slot": trial.slot,
        "storages": [name for name, reason in trial.storages.items() if reason is True],
        "policies": [name for name, reason in trial.policies.items() if reason is True],
        "ok": trial.is_ok,
    }
    if not trial.is_ok:
        raise RefusedModel(trial.reason, found)
    return found
