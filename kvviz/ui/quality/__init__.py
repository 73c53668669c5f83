"""The Quality page: what is lost along a text, at which budget, and which needles are still found."""
