"""Who leaves the cache when: by position or by attention; may import cache, policies, choices and models."""
