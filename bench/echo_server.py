"""The plainest server of the SDK: one tool that returns its text. Every server built on the SDK costs at least this."""

from mcp.server import MCPServer

server = MCPServer("echo")


@server.tool(structured_output=False)
def echo(text: str) -> str:
    """The text."""
    return text


if __name__ == "__main__":
    server.run()
