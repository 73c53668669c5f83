"""One pass of a model under a setup, from tokens to a trace.

May import measures, eviction, cache and all below them.
"""
