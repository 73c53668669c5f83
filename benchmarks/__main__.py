"""``make bench``: measure every number to reach, write one file a part, and README's table from these files.

``python -m benchmarks PART…`` measures some parts. Run it on an otherwise idle machine: the figures are ratios inside
one run, but a ratio is only as steady as the machine.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence

from benchmarks import against_kvpress, decode, equality, long_stream, methods, results, second_start, speed, trust
from benchmarks.results import Figure, Row

PARTS: dict[str, Callable[[], Iterator[Figure | Row]]] = {
    "equality": equality.figures,
    "speed": speed.figures,
    "decode": decode.figures,
    "long stream": long_stream.figures,
    "kvpress": against_kvpress.figures,
    "second start": second_start.figures,
    "trust": trust.figures,
    results.METHODS: methods.rows,
}


def main(names: Sequence[str]) -> int:
    """Measure the parts named, all unless said; 2 for a name that is none."""
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        print(f"There is no part {unknown[0]!r}; choose from: {', '.join(PARTS)}.", file=sys.stderr)
        return 2
    for name in names or PARTS:
        measure(name)
    results.rewrite_readme()
    return 0


def measure(name: str) -> None:
    """Measure one part and write its file; one that fails leaves the reason there, and no number."""
    print(name, flush=True)
    found: list[Figure | Row] = []
    try:
        for figure in PARTS[name]():
            print(f"  {figure}", flush=True)
            found.append(figure)
    except Exception as error:
        why = (str(error).strip() or type(error).__name__).splitlines()[0]
        print(f"  could not run: {why}", flush=True)
        results.write(name, [], cannot=why)
    else:
        results.write(name, found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
