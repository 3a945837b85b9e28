"""Settings of the HTTP server and of access to it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_network

from kalito_mcp.domain.validation import Policy, bounded
from kalito_mcp.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class HttpPolicy(Policy):
    """`hosts` are names by which clients reach the server besides loopback names and the host of `public_url`, such as
    `memory.example.org`; `origins` are web pages whose scripts may call it. `public_url` is the server's URL behind a
    proxy, such as `https://memory.example.org`. `sign_in` says whether people can give programs access on a page of
    this server. `client_documents` says whether it then reads programs' descriptions from the web: only with a public
    URL, so that a memory of one machine contacts nobody. `proxies` are addresses or networks of proxies whose
    X-Forwarded-For is trusted.

    `calls_per_minute` and `writes_per_minute` are limits of one token, `refusals_per_minute` of an address without a
    valid token. A host that records each turn of sixteen agents, each with a turn and some reports of tools every five
    seconds, comes to 400 writes.
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
        """Raises InvalidInput for a proxy that is not an address, or a number out of its bounds."""
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
    """An OpenID provider whose access tokens are accepted, if `issuer` is set, exactly as the provider writes it.

    A token must be made for `audience`, or else for the URL of this server. The claim `owner_claim` identifies the
    person, and `owners` maps people to memories; nobody else has access. If it is empty, everybody gets their own
    memory. Its owner is the issuer and the claim.

    `scope_claim` has what they may do, as a list or with spaces between; `realm_access.roles` is inside an object.
    The other fields say which of its values give which permission.
    """

    issuer: str = ""
    audience: str = ""
    owner_claim: str = "sub"
    owners: Mapping[str, str] = field(default_factory=dict[str, str])
    scope_claim: str = "scope"
    read_scopes: tuple[str, ...] = ("read",)
    write_scopes: tuple[str, ...] = ("write",)
    admin_scopes: tuple[str, ...] = ("admin",)
