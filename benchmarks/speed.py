"""How fast? Replay against one plain forward and against stepping; generate against the stock model."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks import stock
from benchmarks.material import loaded, text_ids
from benchmarks.timing import ratio, take_turns
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


def lines() -> Iterator[str]:
    """All timings; the machine should do nothing else meanwhile."""
    yield from replay_lines()
    yield from stepping_lines()
    yield from generate_lines()


def replay_lines() -> Iterator[str]:
    model, ids = loaded().model, text_ids(TOKENS)
    contestants = {"plain": lambda: stock.forward(model, ids)}
    for name, setup in setups().items():
        contestants[name] = lambda setup=setup: replay(model, ids, setup)
        contestants[f"{name} + measures"] = lambda setup=setup: replay(model, ids, setup, measure=True)
    times = take_turns(contestants, ROUNDS)
    yield f"Replay of T = {TOKENS} by one plain sdpa forward ({min(times['plain']):.2f} s); wanted ≤ 3"
    for name in contestants:
        yield f"  {name:28} {ratio(times, name, 'plain'):.2f}×"


def stepping_lines() -> Iterator[str]:
    model, ids = loaded().model, text_ids(TOKENS)
    contestants = {
        "stepping": lambda: stock.steps(model, ids),
        "replay": lambda: replay(model, ids, parse_setup({"policy": f"streaming:budget={BUDGET}"})),
    }
    times = take_turns(contestants, 2)
    yield f"Stock stepping by replay of T = {TOKENS} ({min(times['stepping']):.1f} s); wanted ≥ 15"
    yield f"  {ratio(times, 'stepping', 'replay'):.1f}×"


def generate_lines() -> Iterator[str]:
    model, prompt = loaded().model, text_ids(PROMPT)
    contestants = {
        "stock": lambda: stock.write(model, prompt, NEW_TOKENS),
        "full": lambda: generate(model, prompt, Setup(), NEW_TOKENS),
        "window": lambda: generate(model, prompt, parse_setup({"policy": f"window:budget={BUDGET}"}), NEW_TOKENS),
    }
    times = take_turns(contestants, WRITING_ROUNDS)
    yield f"Generate: {NEW_TOKENS} tokens after {PROMPT}, by the stock DynamicCache and sdpa; wanted ≤ 1.10 for full"
    for name in ("full", "window"):
        yield f"  {name:28} {ratio(times, name, 'stock'):.3f}×"
