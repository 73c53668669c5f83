"""``python -m kvviz.ui.set_up``: before the first start, prepare the model and compute what a first visitor sees.

Later starts find both, and cost the fraction of a second it takes to check the model's files.
"""

from __future__ import annotations

import os
import sys

from kvviz.models import ModelError, warm
from kvviz.ui.shell.disk_results import KEEP_RESULTS


def main() -> int:
    """Return 0, or 2 after one sentence on standard error."""
    try:
        if warm.prepare():
            compute_first_figures()
    except ModelError as error:
        print(f"\n{error}", file=sys.stderr)
        return 2
    return 0


def compute_first_figures() -> None:
    """What fails here is tried again, and said, when a page asks for it."""
    os.environ.setdefault(KEEP_RESULTS, "1")
    try:
        print("computing the first figures, once (about half a minute)", file=sys.stderr)
        from kvviz.ui.pages import PAGES  # registers the settings that a view has
        from kvviz.ui.quality.stream_run import stream_job
        from kvviz.ui.shell.page import compute, first_runs
        from kvviz.ui.shell.state import View

        assert PAGES
        view = View()
        compute(first_runs(view))
        compute([stream_job(view, setup) for setup in (view.experiment.setup, view.versus)])
    except Exception as error:
        print(f"kvviz: {error}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
