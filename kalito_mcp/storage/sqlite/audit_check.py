"""The part of `inspection` about the audit log."""

import sqlite3

from kalito_mcp.domain.audit import Chain
from kalito_mcp.storage.audit import SELECT_CHAIN, SELECT_HEAD
from kalito_mcp.storage.audit_rows import fault_at_end, fault_in_page


def audit_fault(connection: sqlite3.Connection) -> tuple[str | None, int]:
    """The fault of the audit log, or None; and the number of entries read."""
    chain = Chain()
    fault = fault_in_page(chain, connection.execute(SELECT_CHAIN, {"after": 0, "limit": -1}))
    if fault is None:
        fault = fault_at_end(chain, connection.execute(SELECT_HEAD).fetchall())
    return fault, chain.last.count
