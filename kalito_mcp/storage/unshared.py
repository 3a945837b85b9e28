"""Owed work in a store that leaves it to the process that has it open."""

import math
from collections.abc import Collection, Mapping


class Unshared:
    """The part of `ports.maintenance.Maintenance` about who does owed work: this process does all."""

    lease_s = math.inf

    async def held(self, owners: Collection[str]) -> Collection[str]:
        """All of them."""
        return owners

    async def claim_owed(self) -> Mapping[str, int]:
        """Nobody: the first look finds what every owner owes, and a nudge what comes later."""
        return {}

    async def settle_owed(self, looked_at: Mapping[str, int]) -> None:
        """Nothing is kept of it."""

    async def claim_vectors(self, fingerprint: str, *, limit: int) -> None:
        """All vectors are claimed."""
