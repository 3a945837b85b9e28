"""A statement that a newer one ends in plain words is labelled; what only resembles it is not."""

from kalito_mcp.domain.records import RecordType, Role
from kalito_mcp.domain.search import Hit
from kalito_mcp.retrieval.ended import with_ends
from tests.scripted import START_MS


def hit(number: int, text: str, role: Role = Role.USER) -> Hit:
    at = START_MS + number
    return Hit(f"msg_{number}", RecordType.MESSAGE, "s", role, None, text, at, 0.5, None, seq=number)


def test_a_statement_that_is_ended_by_name_is_labelled() -> None:
    for older, newer in (
        ("We deploy on Fridays.", "We no longer deploy on Fridays, we deploy on Tuesdays."),
        ("Nina is drinking green tea.", "Nina stopped drinking green tea."),
        ("Priya is assigned to the Falcon project.", "Priya moved from the Falcon project to the Heron project."),
        ("Our office has a ping-pong table.", "By the way: our office doesn't have a ping-pong table any more."),
        ("Wir deployen freitags.", "Wir deployen nicht mehr freitags."),
        ("I live in Porto.", "I live in Bern now."),
        ("Wir nutzen npm.", "Wir nutzen jetzt pnpm."),
    ):
        first, second = with_ends([hit(1, older), hit(2, newer)])
        assert (first.valid_until, first.superseded_by) == (START_MS + 2, "msg_2")
        assert second.valid_until is None


def test_what_is_not_ended_is_not_labelled() -> None:
    for older, newer in (
        ("We deploy on Fridays.", "We deploy on Tuesdays."),
        ("I live in Porto.", "I work in Bern now."),
        ("I live in Porto.", "Now I live in Bern with Ana and the cats."),
        ("We deploy on Fridays.", "We no longer deploy on Mondays."),
        ("We deploy on Fridays after the stand-up with Ana and Tomas.", "We no longer deploy on Fridays."),
        ("Nina is drinking green tea.", "Ola stopped drinking coffee."),
        ("We no longer deploy on Fridays.", "We no longer deploy on Fridays, as I said."),
        ("Nina is drinking green tea.", "Nina stopped by. She is drinking green tea."),
    ):
        assert [one.valid_until for one in with_ends([hit(1, older), hit(2, newer)])] == [None, None]


def test_only_what_is_older_and_said_by_a_person_is_ended() -> None:
    ending = "We no longer deploy on Fridays."
    assert with_ends([hit(3, "We deploy on Fridays."), hit(2, ending)])[0].valid_until is None
    assert with_ends([hit(1, "We deploy on Fridays.", Role.ASSISTANT), hit(2, ending)])[0].valid_until is None
    assert with_ends([hit(1, "We deploy on Fridays."), hit(2, ending, Role.ASSISTANT)])[0].valid_until is None


def test_of_what_the_own_clock_stamped_the_one_stored_later_ends_the_other_though_the_clock_was_set_back() -> None:
    hits = [hit(3, "We deploy on Fridays."), hit(2, "We no longer deploy on Fridays.")]
    assert with_ends(hits, ["msg_3", "msg_2"])[0].superseded_by == "msg_2"
    assert with_ends(hits, ["msg_2", "msg_3"])[0].superseded_by is None
    assert with_ends(hits, ["msg_3"])[0].superseded_by is None
