"""What a person chooses: setup, pattern, storage, text, experiment, and how they travel in a link.

May import knobs, policies, models and text.
"""
