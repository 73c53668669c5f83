"""Several policies at several budgets on one text: what each holds and what it loses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from kvviz.choices.setup import Setup
from kvviz.knobs import spell
from kvviz.policies import POLICIES, parse_policy

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@dataclass(frozen=True)
class Point:
    """A setup of a sweep: ``policy`` as it was spelled, ``budget`` None where it has none (the full cache)."""

    policy: str
    budget: int | None
    setup: Setup


@dataclass(frozen=True)
class Row:
    """What a point was measured to lose and to hold."""

    setup: str
    policy: str
    budget: int | None
    nll: float  # nats, mean over the scored tokens
    cache_bytes: int  # at the end
    seconds: float


def points_of(policies: Sequence[str], budgets: Sequence[int], base: Setup) -> list[Point]:
    """Every policy at every budget, in this order; one without a budget comes once.

    Raises ValueError for a policy that does not exist, a budget given twice, in the list or as a knob too, or one that
    the policy refuses.
    """
    if twice := [budget for budget in budgets if list(budgets).count(budget) > 1]:
        raise ValueError(f"The budget {twice[0]} is given twice; give each budget once.")
    found = []
    for word in policies:
        name, _, knobs = word.strip().partition(":")
        if "budget" in (knob.partition("=")[0] for knob in knobs.split(",")):
            raise ValueError(f"{word.strip()!r} has a budget of its own; leave it out, --budgets says which to try.")
        parse_policy(name)  # an unknown name gets the choices
        if not hasattr(POLICIES[name], "budget"):
            policy = parse_policy(word.strip())
            found.append(Point(spell(policy), None, replace(base, policy=policy)))
            continue
        for budget in budgets:
            policy = parse_policy(f"{name}:budget={budget}{',' * bool(knobs)}{knobs}")
            found.append(Point(word.strip(), budget, replace(base, policy=policy)))
    return found


def swept(
    model: PreTrainedModel,
    ids: Sequence[int],
    point: Point,
    *,
    prompt_tokens: int | None = None,
    score_from: int = 1,
    block: int | None = None,
    tell: Callable[[str], None] = lambda note: None,
) -> Row:
    """Measure one point; the loss is the mean over the tokens from ``score_from`` on.

    ``tell`` is told what a reader must know of it. Raises ValueError where none of these tokens was computed.
    """
    from kvviz.run.replay import BLOCK, replay  # torch and transformers take seconds to import

    trace = replay(model, ids, point.setup, prompt_tokens=prompt_tokens, block=block or BLOCK)
    for note in trace.notes:
        tell(note)
    scored = trace.nll[max(1, score_from) - 1 :]
    if np.isnan(scored).all():
        raise ValueError(f"None of the scored tokens was computed under {point.setup}; score from an earlier one on.")
    loss = float(np.nanmean(scored))
    return Row(str(point.setup), point.policy, point.budget, loss, trace.cache_bytes, trace.seconds)
