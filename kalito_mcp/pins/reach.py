"""Where a pin is known, if nobody says so: in its session, in its project, or everywhere. Pure.

In a project, only what is plainly the person's leaves it; everything else is the project's. Outside of any project it
is the person's. Code, and how things stood at the end of a conversation, stay in their session.
"""

from typing import Final

from kalito_mcp.domain.kinds import OF_ITS_SESSION
from kalito_mcp.domain.records import Origin, PinType, Reach
from kalito_mcp.kinds.judged import PERSONAL_FROM, Judged
from kalito_mcp.kinds.own import Spoken

_ASKED_PERSONAL_FROM: Final = 0.5
"""How likely what somebody asks to remember is the person's, from which it leaves its project."""


def reach_of(
    judged: Judged, *, has_project: bool, pin_type: PinType = PinType.MANUAL, origin: Origin = Origin.ASSISTANT
) -> Reach:
    """Where what was judged is known. Words of tools, documents and imports stay in their session."""
    if pin_type is PinType.CODE or origin.distrust >= Origin.TOOL.distrust or judged.kind in OF_ITS_SESSION:
        return Reach.SESSION
    if not has_project or judged.is_personal >= PERSONAL_FROM:
        return Reach.PERSON
    return Reach.PROJECT


def reach_of_request(asked: Spoken, *, has_project: bool) -> Reach:
    """Where what somebody asked to remember is known: where the words say, or else as they are judged."""
    if not has_project:
        return Reach.PERSON
    is_personal = asked.judged.is_personal >= _ASKED_PERSONAL_FROM or asked.names_somebody
    return asked.said_reach or (Reach.PERSON if is_personal else Reach.PROJECT)
