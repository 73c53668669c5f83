"""When may a cache be reused? Cached against uncached answers, and what breaks them; may import what analysis may."""
