"""The plainest server of the SDK: one tool that gives its text back. What any server on it costs at least."""

from mcp.server import MCPServer

server = MCPServer("echo")


@server.tool(structured_output=False)
def echo(text: str) -> str:
    """The text."""
    return text


if __name__ == "__main__":
    server.run()
