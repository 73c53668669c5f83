"""Compressing a prompt: kvviz beside kvpress 0.5.5, which needs an older transformers and so an environment of its own.

Both read the same 1,024 tokens with the same weights and keep 256 entries a head, in turns. What differs: kvviz's
streaming limits what a query sees inside the prompt too, kvpress reads with full attention and drops afterwards.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.material import loaded, text_ids
from benchmarks.results import ROOT, Figure, ratio_figure
from benchmarks.timing import seconds_of
from kvviz.choices.setup import parse_setup
from kvviz.eviction.statistics import AT_ENTRY
from kvviz.models import DEFAULT_MODEL
from kvviz.models.store import cache_folder
from kvviz.policies.base import PromptEnd, View
from kvviz.run.reading import Reading
from kvviz.run.replay import open_pass, parts, replay

TOKENS, BUDGET, ROUNDS = 1024, 256, 3
ENVIRONMENT = ROOT / ".venv-kvpress"
NEEDS = ("kvpress==0.5.5", "transformers==5.2.0", f"torch=={torch.__version__.partition('+')[0]}")
SETUPS = {
    "snapkv": f"snapkv:budget={BUDGET},observe=32,kernel=5",
    "streaming": f"streaming:budget={BUDGET},sinks=4",
    "knorm": f"knorm:budget={BUDGET}",
}
TIE = 1e-5  # relative: another order of the same sums
# kept sets at the prompt's end
KEPT = {
    "knorm": f"knorm:budget={BUDGET}",
    "keydiff": f"keydiff:budget={BUDGET}",
    "lagkv": f"lagkv:budget={BUDGET},lag=32,sinks=4",
    "streaming": f"streaming:budget={BUDGET},sinks=4",
}


class CannotRun(Exception):
    """The environment cannot be had here; the message says why."""


def figures() -> Iterator[Figure]:
    """kvviz's time by kvpress's, for each method."""
    python = prepared()
    with tempfile.TemporaryDirectory() as folder, worker(python, Path(folder)) as other:
        for name, word in SETUPS.items():
            yield compared(name, word, other)
        for name, word in KEPT.items():
            yield from differing(name, word, other)


def compared(name: str, word: str, other: subprocess.Popen[str]) -> Figure:
    """Turns of both; the first round does not count."""
    ours, theirs = [], []
    for _ in range(ROUNDS + 1):
        theirs.append(asked(other, name))
        ours.append(seconds_of(lambda: compress(word)))
    what = f"compressing {TOKENS:,} tokens to {BUDGET}, {name}, by kvpress"
    return ratio_figure(what, ours[1:], theirs[1:], "≤ 1.0")


def differing(name: str, word: str, other: subprocess.Popen[str]) -> Iterator[Figure]:
    """Entries that one keeps and the other does not over all layers and heads, and those of them that nothing explains.

    kvviz keeps the prompt's last token whatever its score, and of equal scores the later ones.
    """
    assert other.stdin is not None
    print(f"kept {name}", file=other.stdin, flush=True)
    theirs: list[list[list[int]]] = read(other)["kept"]
    setup = parse_setup({"policy": word})
    trace = replay(loaded().model, text_ids(TOKENS).tolist(), setup, prompt_tokens=TOKENS)
    scores = scores_of(setup.policy) if isinstance(setup.policy, PromptEnd) else None
    count = unexplained = 0
    for layer, heads in enumerate(theirs):
        for head, places in enumerate(heads):
            only = set(places) - set(trace.kept(layer, head, TOKENS - 1).tolist())
            count += len(only)
            unexplained += len(only) if scores is None else below_the_cut(scores[layer][head], only)
    held = sum(len(places) for heads in theirs for places in heads)
    yield Figure(f"kept by kvpress alone, {name}, of {held:,} entries", count, "")
    yield Figure(f"of these with a score below the cut, {name}", unexplained, "", "≤ 0")


def scores_of(policy: PromptEnd) -> list[Tensor]:
    """What every entry of the prompt is worth to the policy in each layer, (H, T), no token being the newest."""
    reading = Reading(loaded().model)
    reading.read(text_ids(TOKENS))
    found = []
    for keys, values in reading.entries():
        numbers = {name: AT_ENTRY[name](keys[0], values[0]) for name in policy.needs}
        places, none = torch.arange(TOKENS).expand(keys.shape[1], -1), torch.zeros(1, 1, dtype=torch.long)
        found.append(policy.score(View(places, TOKENS, none, none, 1, TOKENS, BUDGET, numbers)))
    return found


def below_the_cut(scores: Tensor, places: set[int]) -> int:
    """How many of these entries are not among the best of a head (T,), ties within the order of sums left out."""
    cut = float(scores.sort(descending=True).values[BUDGET - 1])
    return sum(float(scores[place]) < cut - TIE * abs(cut) for place in places)


def compress(word: str) -> None:
    """Read the prompt under a policy, without the output layer but for the last token; what is left is its cache."""
    setup = parse_setup({"policy": word})
    run = open_pass(loaded().model, setup, TOKENS, None)
    for _, part in parts(text_ids(TOKENS), TOKENS, setup, TOKENS):
        run.feed(part, last_only=True)


def prepared() -> Path:
    """The interpreter of kvpress's environment, made if it is not there; CannotRun where it cannot be made."""
    python = ENVIRONMENT / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not (ENVIRONMENT / "ready").exists():
        venv.create(ENVIRONMENT, with_pip=True, clear=True)
        done = subprocess.run(
            [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *NEEDS],
            capture_output=True,
            text=True,
        )
        if done.returncode:
            said = done.stderr.strip().splitlines()
            raise CannotRun(f"kvpress could not be installed ({said[-1] if said else 'pip said nothing'})")
        (ENVIRONMENT / "ready").touch()
    return python


@contextmanager
def worker(python: Path, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """kvpress with the model loaded, waiting for the name of a method."""
    prompt = folder / "prompt.json"
    prompt.write_text(json.dumps(text_ids(TOKENS).tolist()))
    script = Path(__file__).with_name("kvpress_worker.py")
    arguments = [cache_folder() / DEFAULT_MODEL, prompt, BUDGET, torch.get_num_threads()]
    process = subprocess.Popen(
        [python, script, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "OMP_WAIT_POLICY": "PASSIVE"},  # as kvviz sets it: or one waits on the other's cores
    )
    try:
        read(process)
        yield process
    finally:
        process.kill()
        process.wait()


def asked(process: subprocess.Popen[str], name: str) -> float:
    """Seconds that kvpress took, having kept as many entries."""
    assert process.stdin is not None
    print(name, file=process.stdin, flush=True)
    answer = read(process)
    if answer["held"] != BUDGET:
        raise CannotRun(f"kvpress kept {answer['held']} entries instead of {BUDGET}")
    return float(answer["seconds"])


def read(process: subprocess.Popen[str]) -> dict[str, Any]:
    """The next line of the worker; CannotRun if it has ended."""
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise CannotRun("kvpress's worker ended without an answer")
    answer: dict[str, Any] = json.loads(line)
    return answer


if __name__ == "__main__":
    for figure in figures():
        print(figure, flush=True)
    sys.exit(0)
