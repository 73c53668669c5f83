"""What a policy is: a frozen set of knobs and one method, ``keep``, that says which slots survive.

Policies and patterns import torch only where a function needs it: menus list them before it is there, seconds earlier.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from kvviz.knobs import BUDGET_LIMIT, Choice, knob
from kvviz.policies.timing import AFTER, BEFORE, Timing
from kvviz.text.counting import plural

if TYPE_CHECKING:
    from torch import Tensor


# What a policy may ask to be carried beside the slots. The first kind is known when an entry enters, the second is
# attention, which costs a pass row by row.
ENTRY_STATISTICS = ("key_norm", "value_norm", "key", "value")
ATTENTION_STATISTICS = ("received", "rows")


@dataclass(frozen=True)
class Moment:
    """Where in the run a question is asked."""

    newest: int  # position of the token that was just appended
    layer: int
    layers: int
    prompt_tokens: int


@dataclass(frozen=True)
class View:
    """What a policy may look at when token ``newest`` has just been appended and nothing has been evicted for it.

    Slots lie in position order and the last one is the newest token. The leading axes ``…`` are one axis of layers
    where layers are asked together, and absent for a policy that reads attention. ``layer`` and ``head`` broadcast
    against ``positions``; the head axis is 1 where the policy treats all heads alike.

    ``statistics`` has what the policy ``needs``, each with the slots along its last axis:
    ``key_norm``, ``value_norm`` (…, H, K): lengths of key and value as they entered.
    ``key``, ``value`` (…, H, D, K): their numbers, after rotation, in at least float32.
    ``received`` (H, K): attention each key got since it was appended.
    ``rows`` (H, n, K): the attention of the latest n ≤ ``observes`` queries, the latest last.

    Attention comes from queries before the newest token, as the mean over the query heads of a KV head's group; the
    newest token has received none. A policy that decides after its token sees that token's attention too.
    """

    positions: Tensor  # (…, H, K) whole numbers, counted from 0
    newest: int  # position of the token that was just appended
    layer: Tensor  # (…, 1, 1)
    head: Tensor  # (H, 1)
    layers: int
    prompt_tokens: int
    limit: int  # how many slots must survive; fewer than K
    statistics: Mapping[str, Tensor] = field(default_factory=dict)

    @property
    def age(self) -> Tensor:
        """Tokens appended since each slot's own, (…, H, K): 0 for the newest."""
        return self.newest - self.positions


@dataclass(frozen=True)
class Policy(Choice):
    """Which tokens stay in the cache. Subclasses name their knobs, their source and implement ``keep``."""

    kind: ClassVar[str] = "policy"
    differs: ClassVar[bool] = False  # whether layers or heads may keep different tokens under the same limit
    needs: ClassVar[tuple[str, ...]] = ()  # the statistics that ``keep`` looks at, beside positions
    recomputes: ClassVar[bool] = False  # whether there is no cache, and every prediction a forward of its own
    timing: ClassVar[Timing] = BEFORE  # whether it decides before the newest token attends, or after
    is_ring: ClassVar[bool] = False  # whether slot = position mod budget
    acts_once: ClassVar[bool] = False  # whether it acts at the prompt's end alone, and what follows is added
    pools: ClassVar[bool] = False  # whether a slot's score is made of its neighbours' ``votes``

    @classmethod
    def reads_attention(cls) -> bool:
        """Whether ``keep`` looks at attention, so that the rows have to be run through one by one."""
        return bool(set(cls.needs) & set(ATTENTION_STATISTICS))

    @classmethod
    def limits_alike(cls) -> bool:
        """Whether all layers are known to have one limit: those that inherit it, which asks for no layer."""
        return cls.limit is Policy.limit

    @property
    def observes(self) -> int:
        """How many of the latest attention rows ``keep`` needs."""
        return 0

    def may_use(self, first: int, end: int, prompt_tokens: int) -> bool:
        """Whether anything may leave at the rows from ``first`` up to ``end``, or their attention may decide later."""
        return True

    def keep(self, view: View) -> Tensor:
        """Which slots survive, (…, H, K) bool: exactly ``view.limit`` in every head, the newest among them."""
        raise NotImplementedError

    @property
    def size(self) -> int | None:
        """The budget; None for a policy that has none."""
        return getattr(self, "budget", None)

    def limit(self, moment: Moment) -> int | None:
        """How many slots may survive at this moment, the newest token included; None = all of them."""
        return self.size

    def ends_held(self, entries: int) -> tuple[int, int] | None:
        """Of so many held entries, how many are the text's first and how many its latest tokens; None = it depends."""
        return None

    def notes(self, tokens: int, prompt_tokens: int) -> list[str]:
        """Plain sentences about how these knobs meet a text of that many tokens."""
        if self.size is None or self.size < tokens:
            return []
        return [
            f"The budget of {self.size} is not smaller than the text ({plural(tokens, 'token')}): nothing is evicted, "
            "this is exactly the full cache."
        ]

    def role_of(self, position: int, newest: int, prompt_tokens: int) -> str:
        """Why a held token is held, for colouring: ``sink``, ``recent``, ``heavy``, ``window`` or ``other``."""
        return "other"


@dataclass(frozen=True)
class Scored(Policy):
    """A policy that keeps the slots that score highest. Subclasses say what they need and implement ``score``."""

    differs = True
    scores_alone: ClassVar[bool] = True  # whether a slot's score does not depend on which other slots are there

    def score(self, view: View) -> Tensor:
        """What each slot is worth, (H, K): infinite for those that stay in any case.

        The caller may show slots that are empty; whatever they are given is not looked at.
        """
        raise NotImplementedError

    def votes(self, view: View) -> Tensor:
        """The score before neighbours are pooled, (H, K); the score itself where none are."""
        return self.score(view)

    def keep(self, view: View) -> Tensor:
        return top(self.score(view), view.limit)


@dataclass(frozen=True)
class PromptEnd(Scored):
    """A scored policy that acts once, when the prompt's last token has attended; what follows is added and stays."""

    timing = AFTER
    acts_once = True
    budget: int = knob(256, "prompt entries kept", 1, BUDGET_LIMIT)

    def limit(self, moment: Moment) -> int | None:
        is_prompt_end = moment.newest == moment.prompt_tokens - 1
        return self.share(moment) if is_prompt_end and moment.prompt_tokens > self.observes else None

    def may_use(self, first: int, end: int, prompt_tokens: int) -> bool:
        is_over = first >= prompt_tokens or end <= prompt_tokens - max(1, self.observes)
        return not is_over or "received" in self.needs

    def share(self, moment: Moment) -> int:
        """Entries of the prompt that this layer keeps."""
        return self.budget

    def notes(self, tokens: int, prompt_tokens: int) -> list[str]:
        if prompt_tokens > max(self.budget, self.observes):
            return []
        window = f" and the observation window of {self.observes}" if self.observes else ""
        return [
            f"The prompt of {plural(prompt_tokens, 'token')} is not longer than the budget of {self.budget}{window}: "
            "nothing is dropped, this is exactly the full cache."
        ]

    def is_before_choice(self, newest: int, prompt_tokens: int) -> bool:
        """Whether nothing has been chosen yet, or nothing had to be."""
        return newest < prompt_tokens - 1 or prompt_tokens <= max(self.budget, self.observes)


def top(score: Tensor, count: int) -> Tensor:
    """The ``count`` highest scores of each row as a bool mask, (…, K) → (…, K); of equal scores the older leaves."""
    import torch

    if count == score.shape[-1] - 1:  # one leaves, as at every token: the first of the lowest is the oldest of them
        return torch.ones_like(score, dtype=torch.bool).scatter_(-1, score.argmin(-1, keepdim=True), False)
    order = score.flip(-1).argsort(dim=-1, descending=True, stable=True)[..., :count]
    kept = torch.zeros_like(score, dtype=torch.bool)
    return kept.scatter_(-1, score.shape[-1] - 1 - order, True)
