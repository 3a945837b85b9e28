"""Reads forms of unauthenticated clients and browsers, and limits their number of fields. Their size is already
limited: callers without a token may send few bytes.

Starlette's parser reads a byte at a time, whatever the number of fields.
"""

from typing import Final
from urllib.parse import parse_qsl

from starlette.requests import Request

FORM: Final = "application/x-www-form-urlencoded"
_MOST_FIELDS: Final = 50


async def fields_of(request: Request, *, most: int = _MOST_FIELDS) -> list[tuple[str, str]]:
    """The fields of a form; none if it is not one, or has more than `most`. A line ends as it does everywhere else:
    forms send CRLF whatever was written into them."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != FORM:
        return []
    try:
        pairs = parse_qsl((await request.body()).decode("utf-8"), keep_blank_values=True, max_num_fields=most)
    except ValueError:
        return []
    return [(name, value.replace("\r\n", "\n")) for name, value in pairs]
