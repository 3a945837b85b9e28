"""What is true now of the things that records speak of, and what was true before."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from kalito_mcp.domain.facts import StatedFact
from kalito_mcp.domain.scope import Scope


class FactReader(Protocol):
    """Reads of one consistent view. Facts of forgotten and erased records are left out, and so are those of lines
    beyond the limits of a scope."""

    async def of_records(self, scope: Scope, keys: Sequence[int]) -> Mapping[int, Sequence[StatedFact]]:
        """What the records with these keys, which are in the scope, state, with what became of it, by key and in the
        order of the text. Records that state nothing are left out. A record that another one supersedes as a whole has
        a fact of its whole text, whose attribute is `ANY`."""

    async def current(self, scope: Scope, *, subject: str | None = None, limit: int) -> Sequence[StatedFact]:
        """What stands in the scope (of one subject, if it is named): the newest statement of each subject and
        attribute, in that order. What is denied, or was true only in the past, is left out."""

    async def line(self, scope: Scope, subject: str, attribute: str, *, limit: int) -> Sequence[StatedFact]:
        """The statements of one subject and attribute, newest first, with what ended each."""

    async def conflicts(self, scope: Scope, *, limit: int) -> Sequence[tuple[StatedFact, StatedFact]]:
        """Pairs of statements that cannot both be true, although nothing says that anything changed: the older one and
        the newer one, newest pairs first."""

    async def is_behind(self) -> bool:
        """Whether records are still to be read for facts (see `Store.catch_up`)."""
