"""The command line, one file a command; may import everything but ui and figures."""
