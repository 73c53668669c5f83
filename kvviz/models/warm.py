"""``python -m kvviz.models.warm [MODEL]``: fetch and prepare a model before the first page asks for it."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from kvviz.models import DEFAULT_MODEL, MODELS, ModelError, choose_device, is_ready, load


def main(arguments: Sequence[str] = ()) -> int:
    """Prepare the models named, else the default one; return 0, or 2 after one sentence on standard error."""
    try:
        for name in arguments or [DEFAULT_MODEL]:
            prepare(name)
    except ModelError as error:
        print(f"\n{error}", file=sys.stderr)
        return 2
    return 0


def prepare(name: str = DEFAULT_MODEL) -> bool:
    """Prepare a model of the table; False if it was ready. Raises ModelError where it is unknown or cannot be had."""
    if os.environ.get("KVVIZ_DEVICE"):  # a wrong one is said before anything is served; asking costs torch's import
        choose_device()
    if name not in MODELS:
        raise ModelError(f"The model {name!r} is not one that kvviz fetches; choose one of: {', '.join(MODELS)}.")
    card = MODELS[name]
    if is_ready(card):
        return False
    if name != DEFAULT_MODEL:
        print(f"{card.attribution}: {card.licence_url}", file=sys.stderr)
    print(load(name, progress=_report).origin, file=sys.stderr)
    return True


def _report(what: str, share: float) -> None:
    print(f"\r{share:4.0%} {what:<70}", end="\n" if share >= 1 else "", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
