"""``python -m kvviz.models.warm``: fetch and prepare the default model before the first page asks for it."""

from __future__ import annotations

import os
import sys

from kvviz.models import DEFAULT_MODEL, MODELS, ModelError, choose_device, is_ready, load


def main() -> int:
    """Prepare the model unless it is ready; return 0, or 2 after one sentence on standard error."""
    try:
        prepare()
    except ModelError as error:
        print(f"\n{error}", file=sys.stderr)
        return 2
    return 0


def prepare() -> bool:
    """Prepare the default model; False if it was ready. Raises ModelError where it cannot be had."""
    if os.environ.get("KVVIZ_DEVICE"):  # a wrong one is said before anything is served; asking costs torch's import
        choose_device()
    if is_ready(MODELS[DEFAULT_MODEL]):
        return False
    print(load(progress=_report).origin, file=sys.stderr)
    return True


def _report(what: str, share: float) -> None:
    print(f"\r{share:4.0%} {what:<70}", end="\n" if share >= 1 else "", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
