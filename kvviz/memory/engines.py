"""What an engine sets aside for the same cache: pages or padded cells. Another right answer than the payload."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from kvviz.choices.storage import Native
from kvviz.memory import formulas
from kvviz.memory.account import Ask, Kept, bytes_of
from kvviz.memory.shape import Group, Shape, State

PAGE = 16


@dataclass(frozen=True)
class Engine:
    """An allocation rule: how many cells the layers of a group get for one sequence."""

    title: str
    rule: str
    cells: Callable[[Group, Ask], int]
    storages: tuple[str, ...] = ("native",)  # the names of those it has
    state: Callable[[State], State] = lambda state: state  # what it holds of a layer without keys

    def bytes(self, shape: Shape, ask: Ask) -> int:
        """Bytes set aside; policies play no part, these engines keep every token. Storage does where they have it."""

        def keep(group: Group, tokens: int) -> list[Kept]:
            cells = self.cells(group, ask)
            return [Kept(group.layers, cells, seen=cells)]

        groups = tuple(replace(group, state=self.state(group.state)) for group in shape.groups)
        storage = ask.storage if self.stores(ask) else Native()
        return bytes_of(replace(shape, groups=groups), replace(ask, keeping=keep, storage=storage))

    def stores(self, ask: Ask) -> bool:
        """Whether the engine has this storage; it fills its cells with plain numbers where it has not."""
        return ask.storage.name() in self.storages


def full_pages(group: Group, ask: Ask) -> int:
    return formulas.pages(ask.tokens, PAGE)


def own_pages(group: Group, ask: Ask) -> int:
    if group.window is None:
        return full_pages(group, ask)
    return formulas.window_pages(ask.tokens, group.window, PAGE)


def llama_cells(group: Group, ask: Ask) -> int:
    """The context here is that of one slot, as everywhere in kvviz; llama.cpp's -c is that of all slots together."""
    if group.window is None:
        return formulas.padded_cells(ask.tokens)
    return formulas.window_cells(ask.tokens, group.window)


def llama_state(state: State) -> State:
    """All in float32, and of the convolution's inputs those before the newest token: kernel - 1."""
    return State(state.numbers, 4, state.inputs, max(0, state.kernel - 1), 4)


ENGINES = {
    "paged": Engine(
        "pages of 16, all tokens in every layer",
        "every layer, sliding ones too, gets pages for all tokens (engines without a pool of their own for windows)",
        full_pages,
    ),
    "paged_windows": Engine(
        "pages of 16, those outside the window freed",
        "pages outside the window are given back; a window may touch ⌈(W − 1)/16⌉ + 1 pages",
        own_pages,
    ),
    "llama_cpp": Engine(
        "llama.cpp cells",
        "full layers: tokens rounded up to 256 cells; sliding layers: window + 512 new tokens, rounded up to 256; "
        "states in float32",
        llama_cells,
        storages=("native", "q8_0", "q4_0"),
        state=llama_state,
    ),
}
