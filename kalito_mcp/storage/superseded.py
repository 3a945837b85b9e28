"""Which records another one names in its field `supersedes`, by the attributes of its row. Pure."""

import json
from typing import Final

FIELD: Final = "supersedes"


def named_in(attributes: str | None) -> list[str]:
    """The ids of the records that a record supersedes."""
    return list(json.loads(attributes).get(FIELD) or ()) if attributes and FIELD in attributes else []
