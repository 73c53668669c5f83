"""The Speed page: the time of a step, the bytes it reads, the limit that reading sets, and the run report."""
