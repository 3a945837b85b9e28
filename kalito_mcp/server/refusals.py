"""How a refusal is worded: it says what to do, without a library's noise and without our internals."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from mcp.server.mcpserver.exceptions import ResourceError, ToolError
from mcp.shared.exceptions import MCPError
from mcp.types import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST

from kalito_mcp.domain.wording import did_you_mean, shown
from kalito_mcp.errors import (
    AccessDenied,
    ConfigurationError,
    Conflict,
    InvalidInput,
    KalitoError,
    NotFound,
    StorageError,
)
from kalito_mcp.web.faults import describe_error, incident


def refusal(error: BaseException, tool: str) -> ToolError:
    """The ToolError for what a tool raised. Our own errors keep their words; any other is logged under an id."""
    if isinstance(error, KalitoError):
        return ToolError(f"{error.code}: {describe_error(error, tool)}")
    return ToolError(f"internal: {incident(error, tool)}")


@contextmanager
def protocol_errors(what: str) -> Iterator[None]:
    """Raise errors of the block as protocol errors, for calls without a result that could carry them. `what` names
    the call."""
    try:
        yield
    except (MCPError, ResourceError):
        raise
    except (InvalidInput, NotFound, Conflict) as error:
        raise MCPError(code=INVALID_PARAMS, message=str(error)) from error
    except AccessDenied as error:
        raise MCPError(code=INVALID_REQUEST, message=f"{error.code}: {error}") from error
    except (StorageError, ConfigurationError) as error:
        raise MCPError(code=INTERNAL_ERROR, message=describe_error(error, what)) from error
    except Exception as error:
        raise MCPError(code=INTERNAL_ERROR, message=incident(error, what)) from error


def unknown(kind: str, name: str, known: Iterable[str]) -> MCPError:
    """The protocol error for a tool or prompt that does not exist; names the most similar name, or all."""
    return MCPError(code=INVALID_PARAMS, message=f"unknown {kind} {shown(name)}{did_you_mean(name, list(known))}")
