"""``make bench``: print every number to reach beside what was measured. Run it on an otherwise idle machine."""

from __future__ import annotations

import sys

from benchmarks import equality, speed


def main() -> int:
    for part in (equality, speed):
        for line in part.lines():
            print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
