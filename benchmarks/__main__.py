"""``make bench``: print every number to reach beside what was measured. Run it on an otherwise idle machine."""

from __future__ import annotations

import sys

from benchmarks import decode, equality, long_stream, speed


def main() -> int:
    for part in (equality, speed, decode, long_stream):
        for line in part.lines():
            print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
