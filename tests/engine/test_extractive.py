"""Summaries without a model: what they keep, what they drop, and that they never outgrow their room."""

import os
import subprocess
import sys
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kalito_mcp.domain.records import ConversationSummary, MessageWithImportance, Role, SummaryMethod
from kalito_mcp.engine.extractive import NOTHING_TO_SUMMARIZE, fold_summaries, summarize_messages

CARE = (
    ("user", "Hi! I could use some help with my grandmother's medication, it's all getting a bit much."),
    ("assistant", "Of course, I'm happy to help! What does she take at the moment?"),
    ("user", "She takes Lisinopril 10mg for blood pressure, and since March also Metformin 500mg, twice a day."),
    ("assistant", "Thanks. What time does she take the Lisinopril?"),
    ("user", "The Lisinopril at 8am, before breakfast. And she is allergic to penicillin, that's important!"),
    ("assistant", "Noted. Is there anyone else who looks after her during the week?"),
    ("user", "Yes, her neighbour Martha Olsen comes every Tuesday and Friday. Her number is 555-0142."),
    ("assistant", "That's great to hear. It is always good to have somebody nearby."),
    ("user", "We have an appointment with Dr. Chen on November 5 at 10am, in the clinic on Elm Street."),
    ("assistant", "Good. Would you like a reminder the day before?"),
    ("user", "Yes please. Oh, and we decided to stop the sleeping pills because they made her dizzy."),
    ("assistant", "That sounds sensible. Dizziness is a common reason for falls in older people."),
    ("user", "Exactly. She prefers tea to coffee now, by the way, haha."),
    ("assistant", "Haha, lovely! Is there anything else I can do for you?"),
    ("user", "No, that's all for today. Thank you so much!"),
)
SOFTWARE = (
    ("user", "Hello, our import job fails since yesterday and I have no idea why."),
    ("assistant", "Sorry to hear that. What does the log say?"),
    ("user", "It says ValueError: unconverted data remains, in parse_date, called from jobs/import_orders.py."),
    (
        "user",
        "Here's the function:\n```python\ndef parse_date(text):\n    return datetime.strptime(text, '%Y-%m-%d')\n```",
    ),
    ("assistant", "I see. Could you show me one of the values that fail?"),
    ("user", "Sure: 2026-03-01T00:00:00Z. The supplier changed their format with release 4.2."),
    (
        "assistant",
        "The root cause is that strptime only accepts the whole string. Use datetime.fromisoformat, which reads both.",
    ),
    ("user", "Great, that works on my machine. Python 3.11 in production too?"),
    ("assistant", "Yes, fromisoformat accepts the trailing Z from Python 3.11 on."),
    ("user", "We decided to go with fromisoformat then, and to drop Python 3.10 on all 14 workers."),
    ("assistant", "Good choice."),
    ("user", "One more thing: please never log customer emails, Priya from legal was very clear about it."),
    ("assistant", "Understood, I will keep emails out of the log."),
    ("user", "The deadline for the fix is Friday at 17:00, the API listens on port 8080 in staging."),
    ("assistant", "Alright, let's get started. Which test should we write first?"),
)
TRAVEL = (
    ("Ann", "Hey Ben! So good to hear from you, how have you been?"),
    ("Ben", "Hi Ann! Great, thanks! Any plans for the summer?"),
    ("Ann", "Yes! I booked a flight to Lisbon for June 12, it was 240 euros."),
    ("Ben", "Wow, that's amazing! Who is going with you?"),
    ("Ann", "My sister Clara. She lives in Porto now and works as a nurse there."),
    ("Ben", "That's so cool! You two must be really excited."),
    ("Ann", "We are! Our hotel is the Casa Verde, we stay for 9 nights."),
    ("Ben", "Nice! I was in Portugal in 2019, the food is incredible."),
    ("Ann", "I can't wait. But I don't eat fish anymore, since I became a vegetarian last year."),
    ("Ben", "Oh, then try the place on Rua Augusta, it is called Terra and everything is vegetarian."),
    ("Ann", "Thanks for the tip, that's so sweet of you!"),
    ("Ben", "You're welcome! By the way, I got a new job at Novatek, I start on September 1."),
    ("Ann", "Congratulations! That's awesome news!"),
    ("Ben", "Thank you! I'll feed your cat Miso while you are away, I promise."),
    ("Ann", "You're the best. Talk to you soon!"),
)


def _message(number: int, speaker: str, text: str, importance: float = 0.5) -> MessageWithImportance:
    is_named = speaker not in {"user", "assistant", "system"}
    role = Role(speaker) if not is_named else (Role.USER if speaker < "B" else Role.ASSISTANT)
    name = speaker if is_named else None
    return MessageWithImportance(number, "s", role, text, None, None, 0, importance, number, 0, name)


def _messages(turns: Sequence[tuple[str, str]]) -> list[MessageWithImportance]:
    return [_message(number, speaker, text) for number, (speaker, text) in enumerate(turns, 1)]
