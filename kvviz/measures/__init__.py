"""Measures: arrays in, arrays out. Each is one formula with a hand-worked test."""
