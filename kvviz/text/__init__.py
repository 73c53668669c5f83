"""Words on the screen: the prose of the pages by language, counts in words, visible signs; imports nothing of kvviz."""
