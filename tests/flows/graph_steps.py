"""Questions and answers for the flows of the graph, and the steps that these flows share."""

from typing import Any

from tests.flows.harness import Harness, asked

PRINTER = ("How do I restart the printer in the hall?", "Hold its power button for ten seconds.")
LAPTOP = ("Can I restart the printer from my laptop?", "Yes: open its page and choose Restart.")
CAPITAL = ("What is the capital of Norway?", "Oslo, since 1814.")
AGAIN = "how can I restart the printer?"
"""Most similar to LAPTOP, then to PRINTER. Not similar to CAPITAL."""


async def remember(h: Harness, session_id: str, *turns: tuple[str, str], **more: Any) -> list[str]:
    """Record the turns and wait until they are in the session's graph. Returns the ids of the messages."""
    facts = await h.facts("record_messages", session_id=session_id, messages=asked(*turns), **more)
    await h.settled()
    return list(facts["message_ids"])


async def questions(h: Harness, query: str = AGAIN, **more: Any) -> list[str]:
    """The questions of the past answers, best first."""
    return [past["question"] for past in (await h.facts("search_memory", query=query, **more))["past_answers"]]


async def everything(h: Harness, session_id: str) -> tuple[Any, ...]:
    """Everything that a call could change in the session and its agent."""
    return (
        await h.resource("memory://sessions"),
        await h.stats(session_id),
        await h.resource(f"memory://sessions/{session_id}/graph"),
        await h.resource("memory://agent"),
        await h.resource("memory://snapshots"),
    )
