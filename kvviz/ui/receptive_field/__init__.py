"""The Receptive field page."""
