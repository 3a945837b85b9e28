"""What a network address says: whether it is of this machine or the public Internet, and what one holder has. Pure."""

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
    """Whether a numeric address is that of one machine on the public Internet.

    Private, shared, loopback, link-local, reserved, documentation and multicast ranges are not. An IPv4 address inside
    an IPv6 one (mapped, compatible, 6to4, NAT64) must be public, too. What is not an address is not public.
    """
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.scope_id is not None:
            return False
        inner = ip.ipv4_mapped or ip.sixtofour
        if any(ip in network for network in _TRANSLATED):
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFF_FFFF)
        if inner is not None:
            return is_public(str(inner))
    if any(ip in network for network in _SPECIAL) or ip in _SERVICES_OF_CLOUDS:
        return False
    return ip.is_global and not ip.is_multicast and not ip.is_reserved
