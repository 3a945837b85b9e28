"""The command line. One file a command, imported when it is called: `--help` and `stats` never import mcp."""
