"""The table of the page: every view and every act, with the permission that it needs."""

from typing import Final

from kalito_mcp.web.page.acts import ACTS
from kalito_mcp.web.page.app import Line
from kalito_mcp.web.page.ask import ASK
from kalito_mcp.web.page.record import RECORD

PAGE: Final[tuple[Line, ...]] = (*ASK, *RECORD, *ACTS)
