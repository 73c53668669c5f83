"""Tree speculation: drafts of several tokens, verified in one forward; may import what analysis may."""
