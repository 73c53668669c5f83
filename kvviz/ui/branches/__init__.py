"""The Branches page: draft trees verified in one forward, the tree mask, the slots that stay, lengths accepted."""
