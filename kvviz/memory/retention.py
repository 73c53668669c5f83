"""What a policy leaves in each group of layers, by its own word: ``Policy.limit``. No model is asked."""

from __future__ import annotations

from collections import Counter

from kvviz.choices.storage import Quantised, Storage
from kvviz.memory.account import Ask, Keeping, Kept
from kvviz.memory.shape import Group, Shape
from kvviz.policies import Moment, Policy
from kvviz.policies.full import Full
from kvviz.policies.rolling import Rolling
from kvviz.policies.streaming import Streaming
from kvviz.policies.window import Window

SIDE_BY_SIDE = (Full, Window, Rolling, Streaming)  # what they keep is known from positions, without holes


def keeping(policy: Policy, layers: int, prompt_tokens: int | None = None) -> Keeping:
    """How many entries the layers of a group hold under the policy; the prompt is half the tokens unless said."""

    def keep(group: Group, tokens: int) -> list[Kept]:
        prompt = min(prompt_tokens or max(1, tokens // 2), tokens)
        places = group.places if policy.decides_after else group.places[:1]
        found = Counter(kept_in(policy, Moment(tokens - 1, place, layers, prompt), group.window) for place in places)
        share = group.layers // len(places)
        return [Kept(count * share, *kept) for kept, count in found.items()]

    return keep


def kept_in(policy: Policy, moment: Moment, window: int | None) -> tuple[int, int, int]:
    """Recent tokens, sinks and tokens seen, as ``Kept`` has them, in one layer."""
    tokens = moment.newest + 1
    seen = tokens if window is None else min(tokens, window)
    if policy.recomputes:
        return 0, 0, tokens
    if policy.decides_after:
        entries = after_prompt(policy, moment, window)
        return entries, 0, entries
    entries = min(seen, seen if (limit := policy.limit(moment)) is None else limit)
    if not isinstance(policy, SIDE_BY_SIDE):
        return entries, 0, entries
    # a window of the architecture takes the sinks away, and recent tokens fill their places
    sinks = policy.sinks if isinstance(policy, Streaming) and seen == tokens and entries < tokens else 0
    return entries - sinks, sinks, tokens


def after_prompt(policy: Policy, moment: Moment, window: int | None) -> int:
    """Entries of a policy that acts once, when the prompt has been read: its share, and every token since."""
    prompt, tokens = moment.prompt_tokens, moment.newest + 1
    limit = policy.limit(Moment(prompt - 1, moment.layer, moment.layers, prompt))
    kept = min(prompt, prompt if limit is None else limit) + tokens - prompt
    return kept if window is None else min(kept, window)


def doubts(policy: Policy, storage: Storage, shape: Shape) -> list[str]:
    """Sentences about what these bytes leave out; none where they are exact."""
    notes = []
    if isinstance(storage, Quantised) and not isinstance(policy, (*SIDE_BY_SIDE,)) and not policy.recomputes:
        notes.append(
            f"{policy.name()} leaves holes in the blocks of {storage.name()} keys that depend on the text; "
            "they are not counted, so a running cache holds somewhat more."
        )
    has_windows = any(group.window for group in shape.groups)
    if has_windows and (policy.decides_after or (isinstance(policy, Streaming) and isinstance(storage, Quantised))):
        notes.append(f"In sliding layers, {policy.name()} may hold somewhat less than counted here.")
    return notes


def ask_for(policy: Policy, shape: Shape, prompt_tokens: int | None = None, **more: object) -> Ask:
    """An Ask with the policy's keeping; ``more`` are its other fields."""
    return Ask(keeping=keeping(policy, shape.layers, prompt_tokens), **more)  # type: ignore[arg-type]
