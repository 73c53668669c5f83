"""Blocks of tokens shared by prompts with equal beginnings: who holds which block. No tensor is touched."""
