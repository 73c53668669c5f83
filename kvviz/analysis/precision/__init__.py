"""How few bits? What coding keys and values changes in a layer, and what that costs; may import what analysis may."""
