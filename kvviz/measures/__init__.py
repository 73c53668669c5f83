"""Measures: arrays in, arrays out, each one formula with a hand-worked test; may import choices, knobs and text."""
