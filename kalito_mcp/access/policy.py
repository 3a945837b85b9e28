"""The settings of what is served over HTTP."""

from dataclasses import dataclass

from kalito_mcp.domain.validation import Policy, bounded


@dataclass(frozen=True, slots=True)
class HttpPolicy(Policy):
    """`hosts` are names by which clients reach the server besides loopback ones and that of `public_url`, such as
    `memory.example.org`; `origins` are web pages whose scripts may call it. `public_url` is what clients call the
    server behind a proxy, such as `https://memory.example.org`. `calls_per_minute` are those of one
    token. With `chatgpt` the tools `search` and `fetch` are listed, as ChatGPT calls them."""

    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    public_url: str = ""
    calls_per_minute: int = bounded(1_200, least=1)
    chatgpt: bool = False
