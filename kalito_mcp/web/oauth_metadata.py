"""The documents by which clients find out how to get a token: RFC 9728 of this server, RFC 8414 of its sign-in."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from kalito_mcp.domain.access import Permission
from kalito_mcp.web.urls import RESOURCE_METADATA, SERVER_METADATA, ServerUrls

USUAL_SCOPES: Final = (str(Permission.READ), str(Permission.WRITE))
"""What a client should ask for, unless it is for administration."""
_KEPT: Final = {"cache-control": "public, max-age=3600"}


def resource_metadata_routes(urls: ServerUrls, issuer: str | None, scopes: Sequence[str]) -> list[Route]:
    """The RFC 9728 document, for the path of MCP and for the whole host. `issuer` gives the tokens; without it, this
    server does."""

    def document(base: str) -> dict[str, Any]:
        return {
            "resource": base + urls.path,
            "authorization_servers": [issuer or base],
            **({"scopes_supported": list(scopes)} if scopes else {}),
            "bearer_methods_supported": ["header"],
            "resource_name": "kalito memory",
        }

    endpoint = _served(urls, document)
    return [Route(RESOURCE_METADATA + path, endpoint) for path in ("", urls.path)]


def server_metadata_routes(urls: ServerUrls, *, reads_documents: bool) -> list[Route]:
    """The RFC 8414 document, and for hosts that put the path of MCP into its place."""

    def document(base: str) -> dict[str, Any]:
        return {
            "issuer": base,
            "authorization_endpoint": f"{base}/authorize",
            "token_endpoint": f"{base}/token",
            "registration_endpoint": f"{base}/register",
            "revocation_endpoint": f"{base}/revoke",
            "scopes_supported": [str(one) for one in Permission],
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "token_endpoint_auth_methods_supported": ["none"],
            "revocation_endpoint_auth_methods_supported": ["none"],
            "code_challenge_methods_supported": ["S256"],
            "client_id_metadata_document_supported": reads_documents,
            "authorization_response_iss_parameter_supported": True,
        }

    endpoint = _served(urls, document)
    places = (SERVER_METADATA, SERVER_METADATA + urls.path, urls.path + SERVER_METADATA)
    return [Route(place, endpoint) for place in places]


def _served(urls: ServerUrls, document: Callable[[str], dict[str, Any]]) -> Callable[[Request], Any]:
    async def endpoint(request: Request) -> Response:
        return JSONResponse(document(urls.base_for(request.headers.get("host", ""))), headers=_KEPT)

    return endpoint
