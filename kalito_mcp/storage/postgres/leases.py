"""How long a process does the owed work of an owner, by the server's clock; `owed_work` says which process does."""

from dataclasses import dataclass, field
from typing import Final
from uuid import UUID, uuid4

LEASE_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Lease:
    """The name of a store that is open, by which it holds owed work, and for how long it does from each write on."""

    seconds: float = LEASE_S
    holder: UUID = field(default_factory=uuid4)
