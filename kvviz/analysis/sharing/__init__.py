"""Prompts that share the blocks of their common beginning, really run; may import what analysis may."""
