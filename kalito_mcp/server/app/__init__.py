"""The MCP App "What I used": shown by a host beside an answer of `search_memory` or `build_context`."""
