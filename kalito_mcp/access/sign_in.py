"""All that signing in needs: passphrases, clients, consents and the sessions of the page, over one database."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kalito_mcp.access.attempts import AttemptLimiter
from kalito_mcp.access.clients import Clients
from kalito_mcp.access.consents import Consents
from kalito_mcp.access.page_sessions import PageSessions
from kalito_mcp.access.passphrases import Passphrases

if TYPE_CHECKING:
    from kalito_mcp.ports.clock import Clock
    from kalito_mcp.ports.store import Store


@dataclass(frozen=True, slots=True)
class SignIn:
    """Its parts share the database and the count of attempts."""

    passphrases: Passphrases
    clients: Clients
    consents: Consents
    pages: PageSessions

    @classmethod
    def over(cls, store: "Store", clock: "Clock") -> "SignIn":
        """Make the parts."""
        limiter = AttemptLimiter(store, clock)
        return cls(
            Passphrases(store, clock, limiter),
            Clients(store, clock, limiter),
            Consents(store, clock, limiter),
            PageSessions(store, clock),
        )
