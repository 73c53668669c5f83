"""The numbers to reach, as ratios inside one run: this machine's speed cancels out."""

import kvviz  # noqa: F401  says how OpenMP waits, which torch reads when it is imported
