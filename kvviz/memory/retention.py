"""What a policy leaves in each group of layers, by its own word: ``Policy.limit``. No model is asked."""

from __future__ import annotations

from collections import Counter

from kvviz.choices.storage import Storage
from kvviz.knobs import BUDGET_LIMIT
from kvviz.memory.account import Ask, Keeping, Kept
from kvviz.memory.shape import Group, Shape
from kvviz.policies import Moment, Policy


def keeping(policy: Policy, layers: int, prompt_tokens: int | None = None) -> Keeping:
    """How many entries the layers of a group hold under the policy; the prompt is half the tokens unless said."""

    def keep(group: Group, tokens: int) -> list[Kept]:
        prompt = min(prompt_tokens or max(1, tokens // 2), tokens)
        moments = [Moment(tokens - 1, place, layers, prompt) for place in group.places]
        found = Counter(kept_in(policy, moment, group.window) for moment in moments)
        return [Kept(count, *kept) for kept, count in found.items()]

    return keep


def kept_in(policy: Policy, moment: Moment, window: int | None) -> tuple[int, int, int]:
    """Recent tokens, sinks and tokens seen, as ``Kept`` has them, in one layer."""
    tokens = moment.newest + 1
    seen = tokens if window is None else min(tokens, window)
    if policy.recomputes:
        return 0, 0, tokens
    if policy.acts_once:
        entries = after_prompt(policy, moment, window)
        return entries, 0, entries
    entries = min(seen, seen if (limit := policy.limit(moment)) is None else limit)
    ends = policy.ends_held(entries)
    if ends is None:  # taken as if they lay side by side
        return entries, 0, entries
    # a window of the architecture takes the sinks away, and recent tokens fill their places
    sinks = ends[0] if seen == tokens and entries < tokens else 0
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
    if leaves_holes(policy, storage):
        notes.append(
            f"{policy.name()} leaves holes in the blocks of {storage.name()} keys that depend on the text; "
            "they are not counted, so a running cache holds somewhat more."
        )
    has_windows = any(group.window for group in shape.groups)
    if has_windows and (policy.acts_once or (has_sinks(policy) and shares_scales(storage))):
        notes.append(f"In sliding layers, {policy.name()} may hold somewhat less than counted here.")
    return notes


def shares_scales(storage: Storage) -> bool:
    """Whether entries lie in blocks, so that bytes depend on which of them are held and not on how many alone."""
    return storage.number_words(1) is None


def leaves_holes(policy: Policy, storage: Storage) -> bool:
    return shares_scales(storage) and policy.ends_held(1) is None and not policy.recomputes


def has_sinks(policy: Policy) -> bool:
    """Whether it holds the text's first tokens for ever."""
    ends = policy.ends_held(BUDGET_LIMIT)
    return ends is not None and ends[0] > 0


def ask_for(policy: Policy, shape: Shape, prompt_tokens: int | None = None, **more: object) -> Ask:
    """An Ask with the policy's keeping; ``more`` are its other fields."""
    return Ask(keeping=keeping(policy, shape.layers, prompt_tokens), **more)  # type: ignore[arg-type]
