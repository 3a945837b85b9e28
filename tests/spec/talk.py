"""Conversations that the tests of the specification record."""

from collections.abc import Sequence

from kalito_mcp import Memory, MessageWithImportance, NewMessage, Role
from kalito_mcp.domain.scope import Scope
from kalito_mcp.records.recorder import Recorder

SESSION = "session_123"
"""The session of the specification's examples."""


def turns(
    count: int, *, first: int = 1, text: str = "Turn {}: the lake was calm and we stayed until dark."
) -> list[NewMessage]:
    """Messages of user and assistant in turn, the user's first. Each contains its number."""
    roles = (Role.USER, Role.ASSISTANT)
    return [NewMessage(roles[(number - 1) % 2], text.format(number)) for number in range(first, first + count)]


async def say(memory: Memory, messages: Sequence[NewMessage], session: str = SESSION) -> list[str]:
    """Record them and wait for the owed work. Returns their ids."""
    recorded = await memory.record_messages(session, messages)
    await memory.settled()
    return recorded.message_ids


async def say_elsewhere(recorder: Recorder, messages: Sequence[NewMessage], session: str = SESSION) -> list[str]:
    """Record them in a process that does no owed work. Returns their ids."""
    return (await recorder.record(Scope(session=session), messages)).message_ids


def numbers(messages: Sequence[MessageWithImportance]) -> list[int]:
    """The numbers of these messages in the session, counted from 1."""
    return [message.seq for message in messages]
