"""Bytes in words: binary and decimal units side by side, for 131,072 × 8,192 B is 1.00 GiB and 1.07 GB."""

from __future__ import annotations

BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
DECIMAL = ("B", "kB", "MB", "GB", "TB", "PB")
GIB = 2**30


def power_of(count: int) -> int:
    """Which unit fits: 0 for bytes, 1 for KiB, …"""
    return min(max(0, (abs(count).bit_length() - 1) // 10), len(BINARY) - 1)


def binary(count: int) -> str:
    """``16.00 GiB``."""
    power = power_of(count)
    return f"{count / 1024**power:,.2f} {BINARY[power]}" if power else f"{count:,} B"


def decimal(count: int) -> str:
    """``17.18 GB``, in the unit beside the binary one."""
    power = power_of(count)
    return f"{count / 1000**power:,.2f} {DECIMAL[power]}" if power else f"{count:,} B"


def both(count: int) -> str:
    """``16.00 GiB (17.18 GB)``."""
    return f"{binary(count)} ({decimal(count)})" if power_of(count) else binary(count)
