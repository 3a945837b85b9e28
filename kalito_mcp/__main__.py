"""`python -m kalito_mcp`."""

from kalito_mcp.cli.main import main

if __name__ == "__main__":
    main()
