"""The tests mirror the rooms of kvviz."""

import kvviz  # noqa: F401  says how OpenMP waits, which torch reads when it is imported
