"""The Exactness page: cached against uncached answers, the conditions of reuse, edits, masks, removal, positions."""
