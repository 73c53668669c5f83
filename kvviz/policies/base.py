"""What a policy is: a frozen set of knobs and one method, ``keep``, that says which slots survive.

Policies and patterns import torch only where a function needs it: menus list them before it is there, seconds earlier.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from kvviz.knobs import Choice
from kvviz.text.counting import plural

if TYPE_CHECKING:
    from torch import Tensor


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

    Slots lie in position order and the last one is the newest token. The leading axes ``…`` are absent for a
    policy that reads attention (it is asked layer by layer) and one axis of layers for a policy that reads positions
    alone (it is asked once for all layers). ``layer`` and ``head`` broadcast against ``positions``.

    Attention comes from queries before the newest token, as the mean over the query heads of a KV head's group; the
    newest token has received none. A policy that decides ``after`` its token sees that token's attention too.
    """

    positions: Tensor  # (…, H, K) whole numbers, counted from 0
    newest: int  # position of the token that was just appended
    layer: Tensor  # (…, 1, 1)
    head: Tensor  # (H, 1)
    layers: int
    prompt_tokens: int
    limit: int  # how many slots must survive; fewer than K
    received: Tensor | None = None  # (H, K) attention each key got since it was appended
    rows: Tensor | None = None  # (H, n, K) the attention of the latest n ≤ ``observes`` queries, the latest last

    @property
    def age(self) -> Tensor:
        """Tokens appended since each slot's own, (…, H, K): 0 for the newest."""
        return self.newest - self.positions


@dataclass(frozen=True)
class Policy(Choice):
    """Which tokens stay in the cache. Subclasses name their knobs, their source and implement ``keep``."""

    kind: ClassVar[str] = "policy"
    differs: ClassVar[bool] = False  # whether layers or heads may keep different tokens
    reads_attention: ClassVar[bool] = False  # whether ``keep`` looks at more than positions
    recomputes: ClassVar[bool] = False  # whether there is no cache, and every prediction a forward of its own
    decides_after: ClassVar[bool] = False  # whether it decides when the newest token has attended, not before

    @property
    def observes(self) -> int:
        """How many of the latest attention rows ``keep`` needs."""
        return 0

    def keep(self, view: View) -> Tensor:
        """Which slots survive, (…, H, K) bool: exactly ``view.limit`` in every head, the newest among them."""
        raise NotImplementedError

    def limit(self, moment: Moment) -> int | None:
        """How many slots may survive at this moment, the newest token included; None = all of them."""
        return getattr(self, "budget", None)

    def notes(self, tokens: int, prompt_tokens: int) -> list[str]:
        """Plain sentences about how these knobs meet a text of that many tokens."""
        budget = getattr(self, "budget", None)
        if budget is None or budget < tokens:
            return []
        return [
            f"The budget of {budget} is not smaller than the text ({plural(tokens, 'token')}): nothing is evicted, "
            "this is exactly the full cache."
        ]

    def role_of(self, position: int, newest: int, prompt_tokens: int) -> str:
        """Why a held token is held, for colouring: ``sink``, ``recent``, ``heavy``, ``window`` or ``other``."""
        return "other"


@dataclass(frozen=True)
class Scored(Policy):
    """A policy that reads attention and keeps the slots that score highest. Subclasses implement ``score``."""

    reads_attention = True
    differs = True

    def score(self, view: View) -> Tensor:
        """What each slot is worth, (H, K): infinite for those that stay in any case.

        The caller may show slots that are empty; whatever they are given is not looked at.
        """
        raise NotImplementedError

    def keep(self, view: View) -> Tensor:
        return top(self.score(view), view.limit)


def top(score: Tensor, count: int) -> Tensor:
    """The ``count`` highest scores of each row as a bool mask, (…, K) → (…, K); of equal scores the older leaves."""
    import torch

    if count == score.shape[-1] - 1:  # one leaves, as at every token: the first of the lowest is the oldest of them
        return torch.ones_like(score, dtype=torch.bool).scatter_(-1, score.argmin(-1, keepdim=True), False)
    order = score.flip(-1).argsort(dim=-1, descending=True, stable=True)[..., :count]
    kept = torch.zeros_like(score, dtype=torch.bool)
    return kept.scatter_(-1, score.shape[-1] - 1 - order, True)
