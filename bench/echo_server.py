"""The plainest server of the SDK: one tool that returns its text. Every server built on the SDK costs at least this."""

import socket
import sys

from mcp.server import MCPServer

server = MCPServer("echo", log_level="WARNING")


@server.tool(structured_output=False)
def echo(text: str) -> str:
    """The text."""
    return text


def run_over_http() -> None:
    """Serve on a free port, and say on stderr which."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    print(f"serving at http://127.0.0.1:{port}/mcp", file=sys.stderr, flush=True)
    server.run("streamable-http", port=port)


if __name__ == "__main__":
    run_over_http() if sys.argv[1:] == ["http"] else server.run()
