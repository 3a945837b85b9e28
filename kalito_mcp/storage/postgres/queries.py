"""Runs named statements, and says which rows the limits of a caller reach. The implementations of the ports build on
it."""

from typing import TYPE_CHECKING, Final

from kalito_mcp.domain.scope import DEFAULT_AGENT
from kalito_mcp.storage import queries

if TYPE_CHECKING:
    from kalito_mcp.storage.postgres.transactions import Transaction


def within(alias: str) -> str:
    """The condition that a row with the keys of an agent and a project is within the limits. Rows without a project are
    personal, and within the limits of every project. Its parameters: `limits_of`, and `owner`."""
    return f"""
        (:limit_agent IS NULL OR {alias}.agent_key = (
            SELECT key FROM agents WHERE owner_key = :owner AND id = :limit_agent
        )) AND (:limit_project IS NULL OR {alias}.project_key IS NULL OR {alias}.project_key = (
            SELECT key FROM projects WHERE owner_key = :owner AND id = :limit_project
        ))
    """


AGENT_KEY: Final = f"""(
    SELECT key FROM agents WHERE owner_key = :owner AND id = coalesce(
        :agent, (
            SELECT b.id FROM sessions s JOIN agents b ON b.owner_key = :owner AND b.key = s.agent_key
            WHERE s.owner_key = :owner AND s.id = :session AND {within("s")}
        ), :limit_agent, '{DEFAULT_AGENT}'
    ) AND (:limit_agent IS NULL OR id = :limit_agent)
)"""
"""The key of the agent that a scope names, else of its session's agent, else of the default one. Its parameters:
`places_of`."""


class Queries(queries.Queries):
    """Statements that only this store has."""

    _transaction: "Transaction"

    def __init__(self, transaction: "Transaction") -> None:
        super().__init__(transaction)
