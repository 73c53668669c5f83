"""What takes several runs, or gradients through one; may import run and all below it."""
