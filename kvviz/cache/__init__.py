"""How kept entries are held: the cache given to transformers, its stores and the quantiser.

May import choices, knobs and models.
"""
