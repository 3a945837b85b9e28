"""The part of `inspection` about the audit log."""

import sqlite3

from kalito_mcp.domain.audit import AuditHead, Chain
from kalito_mcp.storage.sqlite.audit import NO_HEAD, SELECT_CHAIN, SELECT_HEAD


def audit_fault(connection: sqlite3.Connection) -> tuple[str | None, int]:
    """The fault of the audit log, or None; and the number of entries read."""
    chain = Chain()
    for number, stored, *columns in connection.execute(SELECT_CHAIN, {"after": 0, "limit": -1}):
        found = chain.fault(number, columns, stored)
        if found is not None:
            return found, chain.last.count
    head = connection.execute(SELECT_HEAD).fetchone()
    return (NO_HEAD if head is None else chain.fault_at_end(AuditHead(*head))), chain.last.count
