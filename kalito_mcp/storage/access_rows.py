"""Converts rows of access_tokens to tokens, and tokens to rows. Runs no SQL."""

from typing import Any

from kalito_mcp.domain.access import Permission, Token, TokenKind
from kalito_mcp.domain.scope import Limits
from kalito_mcp.storage.intact_rows import intact_rows


def token_of(row: Any) -> Token:
    """The token of a row with its columns from `id` to `resource`."""
    token_id, prefix, name, owner, permission, agent, project, created_at, kind, *rest = row
    with intact_rows():
        return Token(
            token_id,
            prefix,
            name,
            owner,
            Permission(permission),
            Limits(agent, project),
            created_at,
            TokenKind(kind),
            *rest,
        )


def columns_of_token(token: Token) -> dict[str, Any]:
    """A new token as it is stored, without its owner and the hash of its text."""
    return {
        "id": token.id,
        "prefix": token.prefix,
        "name": token.name,
        "kind": str(token.kind),
        "permission": str(token.permission),
        "agent": token.limits.agent,
        "project": token.limits.project,
        "client": token.client,
        "grant": token.grant,
        "resource": token.resource,
        "created_at": token.created_at,
        "expires_at": token.expires_at,
    }
