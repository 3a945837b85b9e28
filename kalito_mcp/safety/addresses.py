"""Classifies network addresses: of this machine or of the public Internet, and the range of one holder. Pure."""

import ipaddress
from typing import Final

_TRANSLATED: Final = (ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("::/96"))
"""IPv6 addresses whose last 32 bits are the IPv4 address that is really meant."""
_SPECIAL: Final = tuple(
    ipaddress.ip_network(network)
    for network in "192.0.0.0/24 192.88.99.0/24 64:ff9b:1::/48 2001::/23 3fff::/20 5f00::/16".split()
)
"""Ranges that older Pythons take for public ones (IANA's registries of special-purpose addresses)."""
_SERVICES_OF_CLOUDS: Final = frozenset({ipaddress.ip_address("168.63.129.16")})
"""Public by their number only."""

_METADATA: Final = frozenset(
    ipaddress.ip_address(address) for address in ("100.100.100.200", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254")
)
"""Where clouds serve credentials, beside the link-local addresses."""
_PRIVATE: Final = tuple(
    ipaddress.ip_network(network)
    for network in "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 100.64.0.0/10 fc00::/7 fec0::/10".split()
)

LOOPBACK_HOSTS: Final = ("127.0.0.1", "localhost", "::1")
"""Names and addresses of this machine."""
_OWN_NETWORK_BITS: Final = 64
"""Of IPv6: who has one address usually has all that begin alike."""


def own_network(address: str) -> str | None:
    """The address, or the network that its holder has to themselves; None if it is not an address."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return None
    if not isinstance(ip, ipaddress.IPv6Address):
        return str(ip)
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    return str(ipaddress.ip_network((int(ip), _OWN_NETWORK_BITS), strict=False))


def is_public(address: str) -> bool:
    """Whether a numeric address belongs to one machine on the public Internet.

    Private, shared, loopback, link-local, reserved, documentation, Teredo and multicast ranges are not. An IPv4 address
    inside an IPv6 one (mapped, compatible, 6to4, NAT64) must be public, too. What is not an address is not public.
    """
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.scope_id is not None or ip.teredo is not None:
            return False
        inner = _inner(ip)
        if inner is not None:
            return is_public(str(inner))
    if any(ip in network for network in _SPECIAL) or ip in _SERVICES_OF_CLOUDS:
        return False
    return ip.is_global and not ip.is_multicast and not ip.is_reserved


def address_flaw(address: str, *, allows_loopback: bool) -> str | None:
    """Why nothing may be sent to a numeric address; None if it may. Without `allows_loopback` it may be neither this
    machine's nor one of a private network.

    IPv4 addresses inside IPv6 ones (mapped, compatible, 6to4, Teredo, NAT64) are judged as IPv4 addresses.
    """
    ip = ipaddress.ip_address(address)
    if isinstance(ip, ipaddress.IPv6Address):
        ip = _inner(ip) or ip
    if ip.is_link_local or ip in _METADATA:
        return "is a link-local or metadata address"
    if ip.is_unspecified or ip.is_multicast:
        return "is not the address of one machine"
    if ip.is_loopback and not allows_loopback:
        return "leads back to this machine"
    if not allows_loopback and any(ip in network for network in _PRIVATE):
        return "is one of a private network"
    return None


def _inner(ip: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address that an IPv6 address stands for."""
    if any(ip in network for network in _TRANSLATED) and int(ip) > 1:
        return ipaddress.IPv4Address(int(ip) & 0xFFFF_FFFF)
    return ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
