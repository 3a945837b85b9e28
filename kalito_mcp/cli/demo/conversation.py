"""The conversation that `kalito-mcp demo` plays: Maya and her assistant, twelve days in March. Pure.

It is fiction. It is a fair test of a memory: two threads cross (her grandmother's move, a small web page), later facts
replace two earlier ones, and the questions on the last day ask for things said some forty turns earlier.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

USER_NAME: Final = "Maya"

Speaker = Literal["user", "assistant"]

# A turn takes a minute, plus a minute for every this many characters.
_CHARACTERS_PER_MINUTE: Final = 150


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of the script. `number` counts from 1; `is_key`: it states a fact that is asked for, or asks."""

    number: int
    role: Speaker
    text: str
    at: datetime
    is_key: bool


@dataclass(frozen=True, slots=True)
class PlannedPin:
    """What Maya pins right after turn `turn`; `importance` is in [0, 1]."""

    turn: int
    content: str
    importance: float


@dataclass(frozen=True, slots=True)
class Question:
    """Turn `turn` asks for what turn `answered_by` said in the words `fact`."""

    turn: int
    answered_by: int
    fact: str


@dataclass(frozen=True, slots=True)
class PlannedSearch:
    """A search that must find turn `turn`, which says `fact`."""

    query: str
    turn: int
    fact: str


def _maya(text: str) -> tuple[Speaker, str]:
    return "user", text


def _reply(text: str) -> tuple[Speaker, str]:
    return "assistant", text


_MARCH_2: Final = (
    _maya(
        "Hi, I'm Maya. My grandmother Rosa fell in her kitchen on Saturday. Nothing is broken, but she can't live "
        "alone on Whitby Street much longer, and I'm the one organising everything."
    ),
    _reply(
        "I'm glad nothing is broken, and sorry that you both had that fright. There are two things here that are "
        "easily mixed up: help at home for the next few weeks, and a place for the next few years. The first is "
        "urgent, the second deserves time. Have you started on either?"
    ),
    _maya(
        "A carer starts on Wednesday, mornings only. One wish before we go on: put the next step first in every "
        "answer. I read them on the tram, with one hand."
    ),
    _reply("Next step: write down who can help, and when. The rest can wait until you're off the tram."),
    _maya("My brother Tom, but he works in Lisbon until the 20th. So it's me, Nana and Biscuit."),
    _reply("Biscuit?"),
    _maya("Her cat. Fourteen years old, deaf, and in charge of the whole house."),
    _reply(
        "Next step: one page for the carer, on the fridge. Medicines, allergies, doctor, who to call. A new carer "
        "reads one page; nobody reads a folder. (And Biscuit's feeding times, since she outranks us all.)"
    ),
    _maya(
        "Good idea. Important: Nana is allergic to sulfa drugs. She was given one in 2011 and spent four days in "
        "hospital. The carer must know that before anything else."
    ),
    _reply("That goes to the very top, in red. And what does she take every day?"),
    _maya(
        "Amlodipine 5 mg in the morning, half a tablet of mirtazapine at bedtime. Her GP is Dr Okafor at the Mill "
        "Lane practice, and Mrs Dhillon next door has a spare key."
    ),
    _reply(
        "Print this and tape it up.\n"
        "ALLERGY: sulfa drugs (hospital, 2011)\n"
        "Morning: amlodipine 5 mg, after breakfast, with a full glass of water\n"
        "Bedtime: mirtazapine, half a tablet; she may be unsteady afterwards, so a light in the hall\n"
        "GP: Dr Okafor, Mill Lane practice\n"
        "Spare key: Mrs Dhillon, next door\n"
        "Call first: Maya. Then Mrs Dhillon, who is closer than Lisbon."
    ),
    _maya("On the fridge it goes. Thank you, I feel calmer already."),
    _reply("Then it was a good first evening. Sleep well, Maya."),
)

_MARCH_3: Final = (
    _maya(
        "Something else tonight, my head is full of care homes. I have a little project, Lendery: a web page where "
        "our street lends out its tools. Python and SQLite. The drill alone has eleven fans."
    ),
    _reply("Eleven neighbours, one drill: a scheduling classic. Where are you stuck?"),
    _maya('It won\'t even start. "error: address already in use", and it means 8000.'),
    _reply(
        "Next step: `lsof -i :8000`, which names the program that holds it. If that is something you need, give "
        "Lendery a port of its own, high enough that nobody else picks it, and never think about it again."
    ),
    _maya(
        "It's the VPN from work, I can't switch that off. Decided: Lendery's dev server runs on port 8471 from now "
        "on. It's going into the README too."
    ),
    _reply("`uvicorn lendery.app:app --port 8471 --reload`, and you should see the shed."),
    _maya("It lives! Next: who has kept a thing too long? What's a clean way to write that?"),
    _reply(
        "One small function, and the rule lives only there:\n"
        "```python\n"
        "def is_overdue(loan, today):\n"
        "    return loan.returned_on is None and today > loan.due_on\n"
        "```\n"
        "`today` is an argument, not a call to the clock, so a test can pick its day: due yesterday, due today, due "
        "tomorrow. Three lines of tests, and the rule can never drift."
    ),
    _maya("So much nicer than my four ifs. I called date.today() inside, and the tests broke every morning."),
    _reply("Clocks are like cats: don't let them in where things have to stay put."),
    _maya("Ha. Biscuit feels seen. Good night!"),
)

_MARCH_5: Final = (
    _maya(
        "I saw two places today. Birchwood House is a proper care home: nurses day and night, 1,150 a week, a room "
        "free from the 16th. The corridors smelled of soup, in a good way, and somebody was playing the piano badly."
    ),
    _reply("That sounds alive. And the other one?"),
    _maya(
        "Linden Court. A little flat of her own on the ground floor, a warden on call, lunch if you want it, 780 a "
        "week. Such a garden! But nobody is awake there at night."
    ),
    _reply(
        "Next step: ask Rosa, before the two of us weigh anything. Money, garden and piano matter less than whether "
        "she can imagine a Tuesday there. What did she say when you described them?"
    ),
    _maya(
        '"I am not moving anywhere with a lounge called The Sunshine Room." That\'s Birchwood, minus one point. And '
        "how do I even compare them? One is a room with care, the other a flat with a garden."
    ),
    _reply(
        "Compare the hours in which something can go wrong. By day both are fine, and Linden Court is the better "
        "life. At night Birchwood has nurses and Linden Court has a phone number. So: how are her nights since the "
        "fall?"
    ),
    _maya(
        "Twice this week she asked me when Grandpa comes home. He died in 2016. Dr Okafor sends her to the memory "
        "clinic: Thursday 12 March at 14:30, at St Anne's, second floor."
    ),
    _reply(
        "Next step: put the 12th in the calendar, with the medicine page and a note about those two evenings; doctors "
        "love dates. That must have been hard to hear, Maya. Answering gently and changing the subject, as you "
        "probably did, is exactly what they recommend."
    ),
    _maya("I told her he's late. Then the nights decide it: we take Birchwood House. I'll ring them tomorrow."),
    _reply(
        "A clear decision, for a good reason. Ask them three things on the phone: the deposit, the notice period, "
        "and whether her own armchair may come."
    ),
    _maya("The armchair! She'd never forgive me."),
)

_MARCH_7: Final = (
    _maya(
        "Rain, croissants, code. Last night Lendery's reminder went out twice, to the whole street. Mr Petrov from "
        "number 9 answered both, very politely."
    ),
    _reply(
        "Next step: take the timer out of the web server. `--reload` starts a second process, and a timer that lives "
        "inside fires in both. A cron job is dull, and dull is what you want at seven in the morning."
    ),
    _maya("That was the problem! It's a cron job now, at 07:00, and the mail goes out once."),
    _reply(
        "Good. One more belt for those braces: store the day of the last reminder with each loan. Then even a run "
        "that starts twice stays silent the second time."
    ),
    _maya("Done, a column reminded_on. I promised everyone: never more than one reminder a week."),
    _reply(
        "So the condition is: overdue, and reminded_on is empty or at least seven days old. Worth two tests, one on "
        "each side of the seventh day. Mr Petrov would approve."
    ),
    _maya("All green. I'm off to celebrate by descaling Nana's kettle."),
    _reply("You know how to live."),
)

_MARCH_9: Final = (
    _maya(
        'Bad news. Birchwood rang: no pets, no exceptions. Nana heard "no cat", hung up on them and went to water '
        "her geraniums."
    ),
    _reply(
        "Next step: ring Linden Court, and ask about cats before anything else. At fourteen you don't rehome a deaf "
        "cat, and at eighty-six you don't rehome her person without her."
    ),
    _maya(
        "Did it at lunch. Cats are welcome, and since this month they have a night nurse in the building. That was "
        "my only objection."
    ),
    _reply("Then the reason for Birchwood is gone, and the reason against it is asleep on the radiator."),
    _maya(
        "So I've changed my mind: not Birchwood. We take Linden Court, flat 4, from Monday 16 March. Nana said yes "
        "before I had finished the sentence."
    ),
    _reply(
        "Wonderful. Next step: cancel Birchwood in writing, today, so that no deposit falls due. Then give Dr Okafor "
        "the new address, move the phone line with its old number (she knows it by heart, and so do her friends), "
        "and measure the door of flat 4 for the armchair."
    ),
    _maya(
        "And the clinic has moved us. The 12th is off, the new appointment is Thursday 19 March at 10:15. Still St "
        "Anne's, second floor."
    ),
    _reply("Changed. Mornings are better for her anyway; she's sharpest before lunch."),
    _maya(
        "True! The van comes on Saturday 21 March at 8:30. Harlow Vans, reference HV-3382. Tom lands the evening "
        "before, so he gets the armchair."
    ),
    _reply("Poor Tom. Have croissants ready."),
)

_MARCH_11: Final = (
    _maya("Fifteen boxes packed. We found 41 jars of jam, all labelled, the oldest from 1987."),
    _reply("A fine vintage. Photograph them all, and let her choose a few to keep?"),
    _maya("She's keeping nine. Oh, and she'd like her bedroom wall sage green, not the beige they offer."),
    _reply(
        "Next step: a tester pot, on a sheet of paper you can carry from window to window. In northern light sage "
        "green turns grey, and she should see that before the painter does."
    ),
)

_MARCH_13: Final = (
    _maya(
        "I'm at the pharmacy. Nana has a bladder infection and a locum prescribed co-trimoxazole. Anything I should "
        "know before I pay?"
    ),
    _reply(
        "Next step: don't take it home. Half of co-trimoxazole is sulfamethoxazole, a sulfa drug, and Rosa is "
        "allergic to those. Tell the pharmacist about 2011, now, and have them ring Dr Okafor for something else."
    ),
    _maya("Oh. They've rung Mill Lane and she gets another one. My knees are a bit weak. Thank you."),
    _reply("You asked at exactly the right moment. Sit down for a minute."),
    _maya("Sitting. Distract me: which port did I give Lendery? Tom wants to see it running."),
    _reply("8471. It only listens on your own machine, so show it to him over a shared screen."),
    _maya("And when exactly are we expected at the memory clinic? My calendar still shows two dates."),
    _reply("Thursday 19 March at 10:15, St Anne's, second floor. Delete the one on the 12th; they moved it."),
    _maya("Last one: that function of ours that tells whether a loan is overdue? Tom should see something pretty."),
    _reply(
        "```python\n"
        "def is_overdue(loan, today):\n"
        "    return loan.returned_on is None and today > loan.due_on\n"
        "```\n"
        "One line, and it has aged better than the jam."
    ),
)

_DAYS: Final = (
    (datetime(2026, 3, 2, 20, 5, tzinfo=UTC), _MARCH_2),
    (datetime(2026, 3, 3, 21, 30, tzinfo=UTC), _MARCH_3),
    (datetime(2026, 3, 5, 18, 40, tzinfo=UTC), _MARCH_5),
    (datetime(2026, 3, 7, 11, 15, tzinfo=UTC), _MARCH_7),
    (datetime(2026, 3, 9, 19, 20, tzinfo=UTC), _MARCH_9),
    (datetime(2026, 3, 11, 12, 10, tzinfo=UTC), _MARCH_11),
    (datetime(2026, 3, 13, 17, 45, tzinfo=UTC), _MARCH_13),
)

PINS: Final = (
    PlannedPin(turn=3, content="Maya reads on the tram: put the next step first in every answer.", importance=0.8),
    PlannedPin(
        turn=9, content="Nana (Rosa) is allergic to sulfa drugs: four days in hospital in 2011.", importance=1.0
    ),
    PlannedPin(
        turn=49,
        content="Decided on 9 March: Nana moves to Linden Court, flat 4, from 16 March. Not Birchwood House.",
        importance=0.9,
    ),
)

QUESTIONS: Final = (
    Question(turn=59, answered_by=9, fact="allergic to sulfa drugs"),
    Question(turn=63, answered_by=19, fact="runs on port 8471"),
    Question(turn=65, answered_by=51, fact="19 March at 10:15"),
    Question(turn=67, answered_by=22, fact="def is_overdue(loan, today)"),
)

SEARCHES: Final = (
    PlannedSearch(query="who has a spare key?", turn=11, fact="Mrs Dhillon"),
    PlannedSearch(query="what did Birchwood say about pets?", turn=45, fact="no pets, no exceptions"),
    PlannedSearch(query="van booking reference", turn=53, fact="HV-3382"),
)


def _conversation() -> tuple[Turn, ...]:
    key_turns = {pin.turn for pin in PINS} | {search.turn for search in SEARCHES}
    for question in QUESTIONS:
        key_turns |= {question.turn, question.answered_by}
    turns: list[Turn] = []
    for begins, exchanges in _DAYS:
        at = begins
        for role, text in exchanges:
            number = len(turns) + 1
            turns.append(Turn(number, role, text, at, is_key=number in key_turns))
            at += timedelta(minutes=1 + len(text) // _CHARACTERS_PER_MINUTE)
    return tuple(turns)


CONVERSATION: Final = _conversation()
