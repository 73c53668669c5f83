"""How fast? Replay against one plain forward and against stepping; generate against the stock model."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks import stock
from benchmarks.material import loaded, text_ids
from benchmarks.results import Figure, ratio_figure
from benchmarks.timing import take_turns
from kvviz.choices.setup import Setup, parse_setup
from kvviz.policies import POLICIES
from kvviz.run.generate import generate
from kvviz.run.replay import replay

TOKENS, BUDGET, ROUNDS = 512, 128, 3
PROMPT, NEW_TOKENS, WRITING_ROUNDS = 256, 96, 5


def setups() -> dict[str, Setup]:
    names = [name for name, cls in POLICIES.items() if not cls.recomputes]  # B² a token is another league
    words = {name: name if name == "full" else f"{name}:budget={BUDGET}" for name in names}
    return {name: parse_setup({"policy": word}) for name, word in words.items()}


def figures() -> Iterator[Figure]:
    """All timings; the machine should do nothing else meanwhile."""
    yield from replay_figures()
    yield from stepping_figures()
    yield from generate_figures()


def replay_figures() -> Iterator[Figure]:
    """Replay against one plain sdpa forward over the same text."""
    model, ids = loaded().model, text_ids(TOKENS)
    contestants = {"plain": lambda: stock.forward(model, ids)}
    for name, setup in setups().items():
        contestants[name] = lambda setup=setup: replay(model, ids, setup)
        contestants[f"{name} with measures"] = lambda setup=setup: replay(model, ids, setup, measure=True)
    times = take_turns(contestants, ROUNDS)
    for name in contestants:
        if name != "plain":
            what = f"replay, T = {TOKENS}, {name}, by one plain forward"
            yield ratio_figure(what, times[name], times["plain"], "≤ 4")


def stepping_figures() -> Iterator[Figure]:
    """The stock model one token at a time, against replay."""
    model, ids = loaded().model, text_ids(TOKENS)
    contestants = {
        "stepping": lambda: stock.steps(model, ids),
        "replay": lambda: replay(model, ids, parse_setup({"policy": f"streaming:budget={BUDGET}"})),
    }
    times = take_turns(contestants, 2)
    yield ratio_figure(f"stock stepping, T = {TOKENS}, by replay", times["stepping"], times["replay"], "≥ 15")


def generate_figures() -> Iterator[Figure]:
    """A new token of kvviz against one of the stock DynamicCache with sdpa; the prompt is read before the clock."""
    model, prompt = loaded().model, text_ids(PROMPT)
    setups = {"full": Setup(), "window": parse_setup({"policy": f"window:budget={BUDGET}"})}
    contestants = {"stock": lambda: stock.write(model, prompt, NEW_TOKENS)}
    for name, setup in setups.items():
        contestants[name] = lambda setup=setup: generate(model, prompt, setup, NEW_TOKENS)
    times = take_turns(contestants, WRITING_ROUNDS)
    for name in setups:
        what = f"generate, {NEW_TOKENS} tokens after {PROMPT}, {name}, by the stock DynamicCache"
        yield ratio_figure(what, times[name], times["stock"], "≤ 1.1")
