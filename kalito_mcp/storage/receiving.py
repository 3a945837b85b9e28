"""The mark of a database into which a migration was begun: until it is finished, only a migration opens it. Pure."""

from typing import Final

from kalito_mcp.errors import Conflict

RECEIVING: Final = -1
"""In `identity.analysis`, which else has the version of the text index."""


def refuse_unfinished(analysis: int) -> None:
    """Raises Conflict if the database has the mark."""
    if analysis == RECEIVING:
        raise Conflict(
            "a migration into this database was not finished; run `kalito-mcp migrate` again as before, which goes on, "
            "or use another database"
        )
