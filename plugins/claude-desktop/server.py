"""Starts the server for Claude Desktop, which gives no arguments to the program of an extension."""

import sys

from kalito_mcp.cli.main import main

sys.argv[1:] = ["serve"]
main()
