"""Hits come with the turns around them, the best sentences first."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.contexts.passages import Turn, passages
from kalito_mcp.contexts.steps import Ends, Steps
from kalito_mcp.domain.records import Origin, RecordType, Role
from kalito_mcp.domain.search import Candidate, Hit
from kalito_mcp.domain.validation import message_number
from tests.scripted import START_MS


def hit(key: int, seq: int | None, session_id: str = "s", text: str = "x", role: Role = Role.USER) -> Hit:
    said = (session_id, role, None, text, START_MS)
    return Hit(f"msg_{key}", RecordType.MESSAGE, *said, 0.5, None, seq=seq)


def message(
    key: int, seq: int | None, session_id: str = "s", text: str = "x", role: Role = Role.ASSISTANT
) -> Candidate:
    said = (session_id, role, None, text, START_MS, seq, None, Origin.ASSISTANT)
    return Candidate(f"msg_{key}", RecordType.MESSAGE, *said)


def seqs(kept: list[Turn]) -> list[list[int | None]]:
    return [[turn.said.seq for turn in passage] for passage in passages(kept)]


def shown(hits: list[Hit], around: list[Candidate], *, kept: int = 1_000) -> list[Turn]:
    steps = Steps(hits, around, "")
    return steps.turns(frozenset().union(*steps.first(kept)))


def in_steps(hits: list[Hit], around: list[Candidate]) -> list[list[int]]:
    """The keys of the turns of each step that none before it has."""
    seen: set[int] = set()
    found: list[list[int]] = []
    for step in Steps(hits, around, "").first(1_000):
        found.append(sorted({message_number(part.record_id) for part in step} - seen))
        seen.update(found[-1])
    return [one for one in found if one]


def test_a_hit_comes_first_and_then_the_turns_before_and_after_it() -> None:
    around = [message(6, 6, role=Role.USER), message(4, 4, role=Role.USER), message(7, 7, role=Role.USER)]
    found = shown([hit(5, 5)], around)
    assert in_steps([hit(5, 5)], around) == [[5], [4], [6], [7]]
    assert {turn.said.seq: turn.is_hit for turn in found} == {5: True, 4: False, 6: False, 7: False}
    assert seqs(found) == [[4, 5, 6, 7]]


def test_what_the_assistant_said_never_stands_without_the_answer_of_the_user() -> None:
    proposal = hit(7, 7, role=Role.ASSISTANT)
    around = [message(number, number) for number in (6, 8, 10)] + [message(9, 9, role=Role.USER)]
    assert in_steps([proposal], around) == [[7, 8, 9], [6], [10]]


def test_every_sentence_of_a_proposal_comes_with_the_beginning_of_its_answer() -> None:
    """Whichever of them fit."""
    long = "".join(f"The plan has a step with the number {number} in it. " for number in range(9))
    answer = "Fine, but 4 attempts. " + long
    steps = Steps(
        [hit(7, 7, text=long, role=Role.ASSISTANT)], [message(8, 8, text=answer, role=Role.USER)], "plan"
    ).first(1_000)
    of_proposal = [step for step in steps if any(part.record_id == "msg_7" for part in step)]
    assert len(of_proposal) == 9
    assert all(any(part.record_id == "msg_8" and not part.place for part in step) for step in of_proposal)


def test_a_question_brings_the_proposal_with_its_answer_and_then_the_outcome() -> None:
    around = [message(7, 7), message(8, 8, role=Role.USER), message(9, 9)]
    assert in_steps([hit(6, 6)], around) == [[6], [7, 8], [9]]


def test_better_hits_come_first_and_the_turns_around_them_by_half_their_scores() -> None:
    hits = [replace(hit(number, 10 * number), score=score) for number, score in ((1, 0.9), (2, 0.6), (3, 0.2))]
    around = [message(number, number, role=Role.USER) for number in (11, 21)]
    assert in_steps(hits, around) == [[1], [2], [11], [21], [3]]


def test_a_long_text_comes_after_others_with_what_is_beyond_its_best_sentences() -> None:
    long = "".join(f"The ferry with the number {number} leaves at seven. " for number in range(40))
    hits = [replace(hit(1, 1, text=long), score=0.9), replace(hit(2, 20, text="Also a ferry."), score=0.6)]
    places = [message_number(next(iter(step)).record_id) for step in Steps(hits, [], "ferry").first(1_000)]
    before = places.index(2)
    assert 1_000 < len(long) * before / 40 <= 1_200


def test_hits_that_share_a_turn_are_one_passage_and_two_without_it() -> None:
    hits = [hit(7, 7), hit(5, 5)]
    around = [message(number, number, role=Role.USER) for number in (4, 6, 8)]
    assert seqs(shown(hits, around)) == [[4, 5, 6, 7, 8]]
    assert seqs(shown(hits, [around[0], around[2]])) == [[7, 8], [4, 5]]


def test_only_turns_of_one_session_make_a_passage_and_what_has_no_place_stands_alone() -> None:
    hits = [hit(1, 1, "b"), hit(2, 2, "a"), hit(3, None, "a"), hit(4, None, "a")]
    around = [message(9, 3, "b", role=Role.USER), message(8, 2, "b", role=Role.USER)]
    assert seqs(shown(hits, around)) == [[1, 2, 3], [2], [None], [None]]


def test_of_latest_conversations_the_last_two_turns_of_each_come_first() -> None:
    said = [
        [hit(10 * rank + number, number, session) for number in range(1, 5)]
        for rank, session in enumerate(("new", "old"))
    ]
    ends = Ends(said, "")
    assert [sorted((turn.said.session_id, turn.said.seq) for turn in ends.turns(step)) for step in ends.first(9)] == [
        [("new", 3), ("new", 4)],
        [("old", 3), ("old", 4)],
        [("new", 1), ("new", 2)],
        [("old", 1), ("old", 2)],
    ]


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 12)), unique=True, max_size=8),
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 12)), unique=True, max_size=16),
)
def test_the_first_steps_make_passages_in_order_of_their_best_hits(
    found: list[tuple[str, int]], around: list[tuple[str, int]]
) -> None:
    keys = {place: number for number, place in enumerate([*found, *(one for one in around if one not in found)])}
    hits = [hit(keys[place], place[1], place[0]) for place in found]
    messages = [message(keys[place], place[1], place[0]) for place in around]
    for kept in range(len(Steps(hits, messages, "").first(1_000)) + 1):
        turns = shown(hits, messages, kept=kept)
        made = passages(turns)
        assert len({turn.said.record_id for turn in turns}) == len(turns)
        assert sorted(turn.said.record_id for one in made for turn in one) == sorted(
            turn.said.record_id for turn in turns
        )
        best = [min(turn.rank for turn in passage) for passage in made]
        assert best == sorted(best)
        for passage in made:
            first = passage[0].said.seq or 0
            assert [turn.said.seq for turn in passage] == list(range(first, first + len(passage)))
            assert len({turn.said.session_id for turn in passage}) == 1
