"""Every error that kalito raises, as one tree. Each class has a stable `code`; each message says what to do next.

    KalitoError
    ├── InvalidInput            an argument of the caller is wrong; nothing was read or written
    │   ├── BudgetTooSmall      the context frame does not fit; says the minimum
    │   ├── QueryTooLong        over `memory.query_s`; a context goes without what it would have found
    │   └── TextTooLarge        over `memory.max_text_bytes`; says the limit
    ├── NotFound                no such thing in this owner's memory
    │   ├── SessionNotFound
    │   └── RecordNotFound
    │       └── RecordErased    it existed, and was erased for good
    ├── Conflict                the state of the memory does not allow it; nothing was written
    │   ├── SessionFinalized
    │   ├── ClientKeyReused
    │   ├── RevisionConflict    the record was edited since it was read
    │   ├── SummaryRangeConflict
    │   ├── AlreadyTakenIn      the same call was sent before, and done
    │   └── GraphFull           everything in the graph is protected from eviction
    ├── AccessDenied            the caller's token does not allow it; nothing was read or written
    │   └── TooManyAttempts     says how long to wait
    ├── ConfigurationError      a setting, an environment variable or a missing extra
    ├── StorageError            a problem with the database file
    │   ├── StorageFull
    │   ├── StorageBusy
    │   ├── StorageReadOnly
    │   ├── StorageDamaged
    │   ├── StorageReplaced     another file is in its place; restart the server
    │   ├── StorageUnreachable  the server of the database does not answer; the next call asks again
    │   ├── VectorsUnreachable  what keeps the vectors outside the file does not answer; no tool reports it
    │   ├── SchemaTooNew
    │   └── SchemaUnknown       of no release, such as one from before the first
    └── ModelError              a language or embedding model failed; memory works without it, so no tool reports it
        ├── ModelUnavailable
        └── ModelReplyInvalid

`InvalidInput`, `NotFound` and `Conflict` are for the caller to fix and reach it unchanged. So do the storage errors,
whose words are written for the person at the keyboard.
"""

from collections.abc import Sequence
from typing import ClassVar


class KalitoError(Exception):
    """Base of every error that kalito raises on purpose."""

    code: ClassVar[str] = "error"


class InvalidInput(KalitoError):
    """An argument is outside what the call accepts."""

    code = "invalid_input"


class BudgetTooSmall(InvalidInput):
    """The token budget is too small for even the frame of a context.

    `minimum` is the smallest budget, in tokens, that would have been accepted; with estimated counts, it may be a token
    too high.
    """

    code = "budget_too_small"

    def __init__(self, budget: int, minimum: int) -> None:
        super().__init__(f"max_tokens={budget} cannot hold even an empty context; ask for at least {minimum} tokens")
        self.minimum = minimum


class QueryTooLong(InvalidInput):
    """A search was ended because it computed for longer than `memory.query_s`."""

    code = "query_too_long"

    def __init__(self, most_s: float) -> None:
        super().__init__(f"the search was ended after {most_s:g} s: ask with fewer or rarer words")


class TextTooLarge(InvalidInput):
    """A text is longer than `memory.max_text_bytes`."""

    code = "text_too_large"


class NotFound(KalitoError):
    """Nothing in this owner's memory has that name."""

    code = "not_found"


class SessionNotFound(NotFound):
    """No session has this id."""

    code = "session_not_found"

    def __init__(self, session_id: str, nearest: str | None = None) -> None:
        """`nearest` is the session that may be meant."""
        self.nearest = nearest
        hint = (
            f"did you mean {nearest!r}? If it is a new one, record a message in it first"
            if nearest
            else "check the id, record a message in it, or search all sessions"
        )
        super().__init__(f"no session {session_id!r}; {hint}")


class RecordNotFound(NotFound):
    """No record has this id."""

    code = "record_not_found"


class RecordErased(RecordNotFound):
    """The record with this id was erased for good."""

    def __init__(self, record_id: str, day: str) -> None:
        super().__init__(f"{record_id} was erased for good on {day} and cannot be brought back; use another id")
        self.record_id = record_id


class Conflict(KalitoError):
    """The call is well formed, but what is stored does not allow it."""

    code = "conflict"


class SessionFinalized(Conflict):
    """The session is closed to new records."""

    code = "session_finalized"

    def __init__(self, session_id: str, state: str) -> None:
        super().__init__(f"session {session_id!r} is {state} and takes no more records; go on under a new session_id")


class ClientKeyReused(Conflict):
    """One `client_key` was sent with two different messages, or two different pins."""

    code = "client_key_reused"

    def __init__(self, client_key: str) -> None:
        super().__init__(
            f"client_key {client_key!r} is already used for another text; "
            "send the same again to retry it, or a new client_key for something new"
        )


class RevisionConflict(Conflict):
    """The record was edited since it was read."""

    code = "revision_conflict"

    def __init__(self, record_id: str, expected: int, current: int) -> None:
        super().__init__(
            f"{record_id} is at revision {current}, not {expected}: "
            f"{'it was edited since you read it' if expected < current else 'that revision does not exist yet'}. "
            f"Read it again; if your edit is still needed, repeat it with expected_revision={current}"
        )
        self.current = current


class SummaryRangeConflict(Conflict):
    """A summary would overlap another, or leave messages uncovered between two."""

    code = "summary_range_conflict"


class AlreadyTakenIn(Conflict):
    """A call that may be sent again was done when it was sent before."""

    code = "already_taken_in"

    def __init__(self) -> None:
        super().__init__("this call was done when it was sent before; nothing was written now")


class GraphFull(Conflict):
    """A graph is full, and everything in it is protected from eviction."""

    code = "graph_full"


class AccessDenied(KalitoError):
    """The caller is known, but may not do this: it lacks a permission, or names what is beyond its limits."""

    code = "forbidden"


class TooManyAttempts(AccessDenied):
    """It was tried too often. `retry_after_s` is how long to wait, in whole seconds."""

    code = "too_many_attempts"

    def __init__(self, retry_after_s: int) -> None:
        unit = "second" if retry_after_s == 1 else "seconds"
        super().__init__(f"too many attempts; wait {retry_after_s} {unit} and try again")
        self.retry_after_s = retry_after_s


class ConfigurationError(KalitoError):
    """A setting or an environment variable is wrong, or an optional dependency is missing."""

    code = "configuration"


class StorageError(KalitoError):
    """The database could not complete a call. Nothing of the failed call was written, unless it was a purge."""

    code = "storage"


class StorageFull(StorageError):
    """The disk is full."""

    code = "storage_full"


class StorageBusy(StorageError):
    """Another process held the write lock for longer than `memory.busy_timeout_s`."""

    code = "storage_busy"


class StorageReadOnly(StorageError):
    """The database, or its folder, cannot be written."""

    code = "storage_read_only"


class StorageDamaged(StorageError):
    """The file is not a database, is cut short, or fails its checks."""

    code = "storage_damaged"


def damage_note(record_ids: Sequence[str]) -> str:
    """The words of a note or an error about records that fail their checks."""
    return f"damaged on the disk: {', '.join(record_ids)}; run kalito-mcp doctor --deep"


class StorageReplaced(StorageError):
    """The file was moved, deleted, replaced or cut short while it was open."""

    code = "storage_replaced"


class StorageUnreachable(StorageError):
    """The server of the database does not answer. It is asked again at the next call."""

    code = "storage_unreachable"


class VectorsUnreachable(StorageError):
    """The place outside the database that keeps the vectors does not answer, or is not configured."""

    code = "vectors_unreachable"


class SchemaTooNew(StorageError):
    """A newer kalito wrote this database."""

    code = "schema_too_new"


class SchemaUnknown(StorageError):
    """The database has the schema of no release. It is not damaged."""

    code = "schema_unknown"


class ModelError(KalitoError):
    """A language or embedding model gave no usable answer."""

    code = "model"


class ModelUnavailable(ModelError):
    """The model is unreachable or too slow, refused the request, or its circuit breaker is open."""

    code = "model_unavailable"


class ModelReplyInvalid(ModelError):
    """The model did not return what it was asked for: a text, or a usable vector for each text."""

    code = "model_reply_invalid"
