"""The Prefixes page: where each prompt breaks, blocks and reference counts, what is saved, equality with fresh runs."""
