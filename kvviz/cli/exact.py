"""``python -m kvviz exact``: when may a cache be reused? Every condition changed once, masks, removal and zeroing."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from kvviz.choices.setup import Setup
from kvviz.cli import inputs
from kvviz.cli.inputs import check_least, encoded, read_text, say_if_short, say_share
from kvviz.cli.options import add_model_options, number, whole

if TYPE_CHECKING:
    from kvviz.analysis.exactness.compared import Compared

ABOUT = "when may a cache be reused? cached against uncached answers, and what breaks them"
EDITED, ADAPTER, SHIFT, WINDOW = 4, 0.02, 1, 32
PASSES = 8  # over the whole text, about so many


def add_options(command: argparse.ArgumentParser) -> None:
    add_model_options(command)
    command.add_argument("--text", required=True, metavar="FILE", help="UTF-8; - reads standard input")
    command.add_argument("--tokens", type=whole, default=None, metavar="N", help="only the first N tokens")
    command.add_argument("--prompt-tokens", type=whole, default=None, metavar="P", help="the prefix, half the tokens")
    command.add_argument("--edit", type=whole, default=None, metavar="I", help=f"token replaced, else {EDITED}")
    command.add_argument("--adapter", type=number, default=ADAPTER, metavar="X", help=f"strength, else {ADAPTER}")
    command.add_argument("--shift", type=whole, default=SHIFT, metavar="N", help=f"positions, else {SHIFT}")
    command.add_argument("--window", type=whole, default=WINDOW, metavar="W", help=f"of the prefix, else {WINDOW}")
    command.add_argument("--remove", type=whole, default=0, metavar="I", help="entry removed and zeroed, else 0")


def answer(arguments: argparse.Namespace) -> dict[str, Any]:
    """Gaps in log-probability (nats) after the prefix; ``first_token`` is a position in the text."""
    check_least(arguments)
    text = read_text(arguments.text)
    loaded = inputs.model_for(arguments, Setup())
    import torch

    from kvviz.analysis import estimate
    from kvviz.analysis.exactness import compared, reuse
    from kvviz.analysis.exactness.masks import masked, read_prefix
    from kvviz.analysis.exactness.removal import check_place, removal_losses

    ids = torch.tensor(encoded(loaded, text, arguments.tokens or sys.maxsize), device=loaded.model.device)
    say_if_short(len(ids), arguments.tokens)
    prefix = arguments.prompt_tokens or len(ids) // 2
    compared.check_prefix(prefix, len(ids))
    edit = min(EDITED, prefix - 1) if arguments.edit is None else arguments.edit
    changed = reuse.conditions(
        replaced=(edit, reuse.other_token(ids.tolist(), min(edit, prefix - 1))),
        adapter=arguments.adapter,
        shift=arguments.shift,
        window=arguments.window,
        number_format=reuse.other_format(loaded.dtype),
    )
    for one in changed.values():
        reuse.check_condition(one, prefix)
    check_place(arguments.remove, prefix)
    inputs.refuse_work(loaded.model, estimate.writing(Setup(), PASSES * len(ids), len(ids) - prefix))
    model, uncached = loaded.model, compared.uncached_logits(loaded.model, ids, prefix)
    cached = reuse.reused(model, ids, prefix, reuse.Condition(), uncached, rows=1, progress=say_share)
    found = {name: reuse.reused(model, ids, prefix, one, uncached) for name, one in changed.items()}
    base = read_prefix(model, ids, prefix)
    right, corner = masked(model, ids, prefix, uncached, base)
    losses = removal_losses(model, ids, prefix, arguments.remove, base)
    return {
        "dtype": str(loaded.dtype).removeprefix("torch."),
        "cached_gap": cached.gap,
        "argmax_agree": cached.agreement,
        "conditions": [told(name, one) for name, one in found.items()],
        "mask": {"right_gap": right.compared.gap, "corner_gap": corner.compared.gap},
        "removal": {way: float(loss.mean()) for way, loss in losses.items()},
    }


def told(name: str, found: Compared) -> dict[str, Any]:
    return {"name": name, "first_token": found.first_token, "gap": found.gap}
