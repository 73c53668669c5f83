"""The Sinks page."""
