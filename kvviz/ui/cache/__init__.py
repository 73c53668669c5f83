"""The Cache page."""
