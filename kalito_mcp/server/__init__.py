"""The MCP server: tools, resources, prompts and transports over one `Memory`. Importing it imports `mcp`."""
