"""The settings of what is served over HTTP."""

from dataclasses import dataclass

from kalito_mcp.domain.validation import Policy, bounded


@dataclass(frozen=True, slots=True)
class HttpPolicy(Policy):
    """`hosts` are names by which clients reach the server besides loopback ones and that of `public_url`, such as
    `memory.example.org`; `origins` are web pages whose scripts may call it. `public_url` is what clients call the
    server behind a proxy, such as `https://memory.example.org`. `sign_in` says whether people can let programs in on a
    page of this server. `calls_per_minute` are those of one token."""

    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    public_url: str = ""
    sign_in: bool = True
    calls_per_minute: int = bounded(1_200, least=1)
