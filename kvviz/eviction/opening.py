"""Which eviction a policy gets, by what it needs to know."""

from __future__ import annotations

from kvviz.eviction.by_attention import AttentionEviction
from kvviz.eviction.by_entry import EntryEviction
from kvviz.eviction.schedule import Eviction, RunContext
from kvviz.policies import Policy, Scored


def open_eviction(policy: Policy, windows: list[int | None], context: RunContext) -> Eviction:
    """Row by row where the policy reads attention, a block at once where it does not; ``windows`` as the model's own.

    Raises TypeError for a policy that reads attention and scores no slots.
    """
    if not policy.reads_attention():
        return EntryEviction(policy, windows, context)
    if not isinstance(policy, Scored):
        raise TypeError(f"{policy.name()} reads attention, so it must be a Scored policy.")
    return AttentionEviction(policy, windows, context)
