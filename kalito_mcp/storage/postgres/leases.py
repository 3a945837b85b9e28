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

    def taken(self) -> str:
        """What takes or prolongs the lease of a row of `owners`, for the SET of an UPDATE."""
        is_others = f"owes AND holder <> '{self.holder}' AND leased_until > statement_timestamp()"
        until = f"statement_timestamp() + make_interval(secs => {self.seconds})"
        return (
            f"holder = CASE WHEN {is_others} THEN holder ELSE '{self.holder}' END, "
            f"leased_until = CASE WHEN {is_others} THEN leased_until ELSE {until} END"
        )
