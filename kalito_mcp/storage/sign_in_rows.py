"""Converts rows of clients, requests, consents and codes to values, and values to rows. Runs no SQL."""

import json
from typing import Any, Final

from kalito_mcp.domain.access import Permission
from kalito_mcp.domain.sign_in import Client, Code, Grant, SignInRequest
from kalito_mcp.storage.intact_rows import intact_rows

_GRANT_COLUMNS: Final = 9
"""How many columns of a consent a row of a code begins with."""


def client_of(row: Any) -> Client:
    """The client of a row."""
    client_id, name, redirect_uris, created_at, checked_at, is_document = row
    with intact_rows():
        uris = tuple(str(uri) for uri in json.loads(redirect_uris))
        return Client(client_id, name, uris, created_at, checked_at, bool(is_document))


def columns_of_client(client: Client) -> dict[str, Any]:
    """A client as it is stored."""
    return {
        "id": client.id,
        "name": client.name,
        "redirect_uris": json.dumps(client.redirect_uris),
        "is_document": int(client.is_document),
        "created_at": client.created_at,
        "checked_at": client.checked_at,
    }


def request_of(row: Any) -> SignInRequest:
    """The request of a row."""
    client, name, redirect_uri, is_explicit, challenge, permission, *rest = row
    with intact_rows():
        return SignInRequest(client, name, redirect_uri, bool(is_explicit), challenge, Permission(permission), *rest)


def columns_of_request(request: SignInRequest) -> dict[str, Any]:
    """A new request as it is stored, without the hash of its handle."""
    return {
        "client": request.client_id,
        "client_name": request.client_name,
        "redirect_uri": request.redirect_uri,
        "is_redirect_explicit": int(request.is_redirect_explicit),
        "challenge": request.challenge,
        "permission": str(request.permission),
        "resource": request.resource,
        "state": request.state,
        "expires_at": request.expires_at,
    }


def grant_of(row: Any) -> Grant:
    """The consent of a row. Further columns say whether it has something that can still be used."""
    grant_id, owner, client, client_name, permission, resource, created_at, revoked_at, last_used_at, *usable = row
    with intact_rows():
        return Grant(
            grant_id,
            owner,
            client,
            client_name,
            Permission(permission),
            resource,
            created_at,
            revoked_at,
            last_used_at,
            revoked_at is None and all(usable),
        )


def columns_of_grant(grant: Grant) -> dict[str, Any]:
    """A new consent as it is stored, without its owner."""
    return {
        "id": grant.id,
        "client": grant.client_id,
        "client_name": grant.client_name,
        "permission": str(grant.permission),
        "resource": grant.resource,
        "created_at": grant.created_at,
    }


def code_of(row: Any) -> Code:
    """The code of a row, which begins with the columns of its consent."""
    redirect_uri, is_explicit, *rest = row[_GRANT_COLUMNS:]
    return Code(grant_of(row[:_GRANT_COLUMNS]), redirect_uri, bool(is_explicit), *rest)


def columns_of_code(code: Code) -> dict[str, Any]:
    """A new code as it is stored, without its hash and its consent."""
    return {
        "redirect_uri": code.redirect_uri,
        "is_redirect_explicit": int(code.is_redirect_explicit),
        "challenge": code.challenge,
        "expires_at": code.expires_at,
    }
