"""``python -m benchmarks.memory_zoo [FAMILY …]``: the memory formula beside the cache of every causal architecture.

Each family that transformers knows is built tiny from its config class, reads a few tokens, and the bytes of the
tensors that its own cache then holds stand beside what ``kvviz.memory`` counts from the config's JSON, once as
``to_dict`` has it and once as ``save_pretrained`` writes it (fields with their default left out).

Verdicts: right (equal bytes), noted (a note says that runtimes differ here), refused (with the reason),
wrong, and unbuilt (the family cannot be built or run tiny, so there is nothing to compare with).
"""

from __future__ import annotations

import multiprocessing
import sys
from collections import Counter
from typing import Any

from benchmarks.tiny_zoo import FAMILIES, VARIANTS, held_bytes, texts_of, tiny_config, tiny_model
from kvviz.memory import Ask, account, read_config

TOKENS = (3, 20)  # below and above every window of the tiny configs
SECONDS = 60
DOUBT = "not every runtime"  # words of a note that says where runtimes differ


def verdict(text: str, held: dict[int, int]) -> tuple[str, str]:
    """The formula's word on one config beside the bytes held at each length."""
    try:
        shape = read_config(text)
        counted = {tokens: account(shape, Ask(tokens)).bytes for tokens in held}
    except ValueError as error:
        return "refused", str(error)
    if counted == held:
        return "right", ""
    gaps = ", ".join(f"{tokens} tokens: {counted[tokens]:,} for {held[tokens]:,} B" for tokens in held)
    return ("noted" if any(DOUBT in note for note in shape.notes) else "wrong"), gaps


def judge(family: str) -> tuple[str, str]:
    """The worse of the two verdicts on a family, with what was found."""
    try:
        config = tiny_config(family)
        texts = texts_of(config)
        model = tiny_model(config)
        held = {tokens: held_bytes(model, tokens) for tokens in TOKENS}
    except Exception as error:  # whatever a family's own code raises
        words = str(error).strip().splitlines() or [""]
        return "unbuilt", f"{type(error).__name__}: {words[-1]}"[:200]
    found = [verdict(text, held) for text in texts]
    return max(found, key=lambda pair: ("right", "noted", "refused", "wrong").index(pair[0]))


def answer(family: str, pipe: Any) -> None:
    pipe.send(judge(family))


def guarded(family: str) -> tuple[str, str]:
    """The same in a process of its own, which may crash or hang."""
    ours, theirs = multiprocessing.get_context("fork").Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=answer, args=(family, theirs))
    child.start()
    theirs.close()
    try:
        found: tuple[str, str] = ours.recv() if ours.poll(SECONDS) else ("unbuilt", f"no answer in {SECONDS} s")
    except EOFError:
        found = ("unbuilt", "its process ended")
    child.kill()
    child.join()
    return found


def main(families: list[str]) -> int:
    totals: Counter[str] = Counter()
    for family in families or [*FAMILIES, *VARIANTS]:
        word, said = guarded(family)
        totals[word] += 1
        print(f"{family:28} {word:8} {said}", flush=True)
    print(
        ", ".join(f"{count} {word}" for word, count in totals.most_common()),
        f"of {totals.total()}: {len(FAMILIES)} families and {len(VARIANTS)} variants",
    )
    return 1 if totals["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
