"""Errors as answers: a status, a code and words."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Final

from pydantic import Field
from starlette.responses import Response

from kalito_mcp.domain.access import Permission
from kalito_mcp.errors import (
    AccessDenied,
    ClientKeyReused,
    ConfigurationError,
    Conflict,
    InvalidInput,
    KalitoError,
    NotFound,
    RevisionConflict,
    StorageBusy,
    StorageError,
    StorageUnreachable,
    TextTooLarge,
)
from kalito_mcp.memory.verbs.shapes import Output
from kalito_mcp.web.faults import describe_error, incident

_STATUSES: Final[Sequence[tuple[type[KalitoError], int]]] = (
    (TextTooLarge, 413),
    (InvalidInput, 422),
    (NotFound, 404),
    (Conflict, 409),
    (AccessDenied, 403),
    (KalitoError, 503),
)
"""The first class that matches the error decides. The rest are storage, settings and model errors."""
_BUSY_S: Final = 1
"""As soon as another server of a database that failed takes writes."""
_TROUBLE_S: Final = 30


class ProblemBody(Output):
    """Why a request was refused, or failed: a stable code, and what to do."""

    error: Annotated[str, Field(description="A code that never changes, such as `session_not_found`.")]
    error_description: Annotated[str, Field(description="What happened, and what to do.")]


class Problem(Exception):
    """A request that is refused or has failed."""

    def __init__(self, status: int, error: str, description: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(description)
        self.status = status
        self.body = ProblemBody(error=error, error_description=description)
        self.headers = {"cache-control": "no-store", **(headers or {})}

    def answer(self) -> Response:
        """The answer that says so."""
        return Response(self.body.model_dump_json() + "\n", self.status, self.headers, "application/json")


def forbidden(needed: Permission, description: str) -> Problem:
    """The refusal of a request that needs a higher permission."""
    challenge = f'Bearer error="insufficient_scope", scope="{needed}"'
    return Problem(403, "insufficient_scope", description, {"www-authenticate": challenge})


@contextmanager
def problems(what: str) -> Iterator[None]:
    """Raise what the block raises as a Problem. `what` names the call. A failure of ours is logged under an id."""
    try:
        yield
    except Problem:
        raise
    except ClientKeyReused as error:
        raise Problem(
            409,
            error.code,
            "this Idempotency-Key came with another request before; send that request again to repeat it, or a new key "
            "for something new",
        ) from error
    except RevisionConflict as error:
        raise Problem(
            412,
            error.code,
            f"it is at revision {error.current} by now; read it again, and if your change is still needed, send "
            f'it with If-Match: "{error.current}"',
        ) from error
    except KalitoError as error:
        status = next(status for kind, status in _STATUSES if isinstance(error, kind))
        raise Problem(status, error.code, describe_error(error, what), retry_after(error)) from error
    except Exception as error:
        raise Problem(500, "internal", incident(error, what)) from error


def retry_after(error: KalitoError) -> Mapping[str, str]:
    """When to try again, if that may help."""
    if isinstance(error, StorageBusy | StorageUnreachable):
        return {"retry-after": str(_BUSY_S)}
    return {"retry-after": str(_TROUBLE_S)} if isinstance(error, StorageError | ConfigurationError) else {}
