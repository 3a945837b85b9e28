"""The settings of what is served over HTTP, and of who is let in."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_network

from kalito_mcp.domain.validation import Policy, bounded
from kalito_mcp.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class HttpPolicy(Policy):
    """`hosts` are names by which clients reach the server besides loopback ones and that of `public_url`, such as
    `memory.example.org`; `origins` are web pages whose scripts may call it. `public_url` is what clients call the
    server behind a proxy, such as `https://memory.example.org`. `sign_in` says whether people can let programs in on a
    page of this server, and `client_documents` whether it then reads how programs describe themselves on the web: only
    with a public URL, so that a memory of one machine asks nobody. `proxies` are addresses or networks of proxies: what
    they say in X-Forwarded-For is believed.

    `calls_per_minute` and `writes_per_minute` are those of one token, `refusals_per_minute` those of an address that
    has no valid one. A host that records each turn of sixteen agents, each with a turn and some reports of tools every
    five seconds, comes to 400 writes.
    """

    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    public_url: str = ""
    sign_in: bool = True
    client_documents: bool = True
    proxies: tuple[str, ...] = ()
    calls_per_minute: int = bounded(1_200, least=1)
    writes_per_minute: int = bounded(600, least=1)
    refusals_per_minute: int = bounded(60, least=1)

    def __post_init__(self) -> None:
        """Raises InvalidInput for a proxy that is no address, or a number out of its bounds."""
        super(HttpPolicy, self).__post_init__()
        for proxy in self.proxies:
            try:
                ip_network(proxy)
            except ValueError:
                raise InvalidInput(
                    f"proxies: {proxy!r} is neither an address nor a network such as '10.0.0.0/8'"
                ) from None


@dataclass(frozen=True, slots=True)
class OidcPolicy(Policy):
    """An OpenID provider whose access tokens are accepted; none without `issuer`, which is as the provider writes it.

    A token must be made for `audience`, or else for the URL of this server. The claim `owner_claim` says who came, and
    `owners` whose memory each of them gets: nobody else comes in. If it is empty, everybody gets a memory of their own.
    Its owner is the issuer and the claim.

    `scope_claim` has what they may do, as a list or with spaces between; `realm_access.roles` is inside an object.
    The others say which of its values give which permission.
    """

    issuer: str = ""
    audience: str = ""
    owner_claim: str = "sub"
    owners: Mapping[str, str] = field(default_factory=dict[str, str])
    scope_claim: str = "scope"
    read_scopes: tuple[str, ...] = ("read",)
    write_scopes: tuple[str, ...] = ("write",)
    admin_scopes: tuple[str, ...] = ("admin",)
