"""The numbers to reach, as ratios inside one run: this machine's speed cancels out."""
