"""Corrections of a mistyped word: every single mistake is undone, and the likeliest term comes first."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.text.analysis import STOP_WORDS, stem
from kalito_mcp.text.spelling import distance, head, is_spellable, near, similarity, spellings, term_lengths

ENGLISH = """
able accident achieve address afternoon airport album allergy almond angle animal answer apartment apple argue arrive
article asthma athlete author autumn avenue bakery balcony banana bathroom battery beach beautiful bedroom bicycle
birthday biscuit blanket bottle bread breakfast bridge brother budget building butter calendar camera candle captain
carpet castle celebrate ceramic challenge champion charity cheese chemical chicken children chocolate cinema climate
climb clothes coffee college colour comedy compare compete complain computer concert confirm contract cookie corner
cottage cotton country courage cousin cover cricket crossing cupboard curtain customer damage dance daughter deadline
december decide deliver dentist describe desert design dessert diet dinner director discover discuss doctor dolphin
donate dragon drawing dream drive during earthquake education electric elephant employ engine enjoy entrance evening
exercise expensive explain factory family farmer favourite festival finger fireworks fishing flight flower football
forest forget fountain freezer friend furniture garage garden ginger glacier glasses grandmother guitar gymnastics
habit hairdresser hammer happen harbour healthy hiking history holiday homework honey horse hospital hotel hundred
husband illness imagine improve injury insurance interview invite island jacket january jewellery journey jungle
keyboard kitchen knitting ladder language laptop lawyer leather lecture leisure lesson letter library licence
listen london luggage machine magazine manager marathon market marriage meadow medicine melody member message midnight
mirror mistake monday money monkey morning mother mountain movie museum mushroom musician mystery nature necklace
neighbour nephew network nickname notebook november nurse ocean october office onion opinion orange orchestra order
oven oxygen package painting palace parent parking passport pasta patient peanut pencil pepper perform phone photo
piano picnic picture pillow pineapple planet plastic poem police pottery present pretty printer prison problem profile
promise puppy puzzle quarter question quick rabbit railway rainbow reading receipt recipe recommend remember repair
restaurant retire return ribbon river robot running sailing salad salmon sandwich saturday scarf schedule scholarship
school science scissors season secret sentence september shadow shampoo shelter shoulder singer sister skiing sleep
slipper soccer soldier spaghetti spider spinach spring squirrel stadium station stomach storage storm story strawberry
street student subject suburb summer sunday sunset supper surgery surprise sweater swimming teacher telephone temple
tennis theatre thunder thursday ticket together tomato tomorrow tonight tooth tournament towel traffic training travel
treasure tuesday turkey umbrella uncle uniform university vacation valley vanilla vegetable vehicle village violin
visit volcano volunteer wallet weather website wedding wednesday weekend weight window winter wizard wonder workshop
yellow yesterday yoga young zebra
""".split()
COUNTS = [(term, 1 + place % 50) for place, term in enumerate(dict.fromkeys(map(stem, ENGLISH)))]
LETTERS = "abcdefghijklmnopqrstuvwxyz"
WORDS = st.text("abcy", min_size=1, max_size=9)
MISTAKES: list[Callable[[str, int, str], str]] = [
    lambda word, place, _: word[:place] + word[place : place + 2][::-1] + word[place + 2 :],
    lambda word, place, _: word[:place] + word[place + 1 :],
    lambda word, place, _: word[: place + 1] + word[place:],
    lambda word, place, letter: word[:place] + letter + word[place + 1 :],
    lambda word, place, letter: word[:place] + letter + word[place:],
]


def inflected(chance: random.Random) -> list[str]:
    """The words, some of them with an ending, that are stemmed to a term of the list."""
    terms = dict(COUNTS)
    return [
        form
        for word in ENGLISH
        for form in [word + chance.choice(["", "", "s", "ed", "ing"])]
        if stem(form) in terms and form not in STOP_WORDS
    ]


def test_nine_of_ten_mistyped_words_find_their_term_among_the_first_three() -> None:
    chance = random.Random(1)
    asked, found = 0, 0
    for word in inflected(chance):
        place, letter = chance.randrange(len(word) - 1), chance.choice(LETTERS)
        wrong = chance.choice(MISTAKES)(word, place, letter)
        if stem(wrong) == stem(word) or len(wrong) < 4:
            continue
        asked += 1
        found += stem(word) in [term for term, _ in near(wrong, COUNTS, limit=3)]
    assert asked > 300
    assert found >= 0.95 * asked


@pytest.mark.parametrize(
    ("word", "term"),
    [
        ("paintnig", "paint"),
        ("paimtings", "paint"),
        ("apinting", "paint"),
        ("recpie", "recip"),
        ("ercipe", "recip"),
        ("resturant", "restaurant"),
        ("runnign", "run"),
        ("runninng", "run"),
        ("storeis", "story"),
        ("sotries", "story"),
        ("yoag", "yoga"),
        ("accidnetally", "accidental"),
        ("reccomended", "recommend"),
    ],
)
def test_a_mistake_is_undone_in_the_word_and_in_its_ending(word: str, term: str) -> None:
    others = [("run", 9), ("accidental", 1)]
    assert near(word, [*COUNTS, *others], limit=1)[0][0] == term


@pytest.mark.parametrize(("word", "term"), [("teh", "the"), ("hte", "the")])
def test_in_a_word_of_three_letters_neighbours_may_be_swapped(word: str, term: str) -> None:
    assert near(word, [("the", 9), ("ten", 9), ("eh", 9), ("her", 9)], limit=9) == [(term, 9)]


@pytest.mark.parametrize(
    ("word", "term"),
    [("cat", "car"), ("sunset", "sun"), ("wether", "weatherman"), ("mp4", "mp3"), ("2025", "2026"), ("xylem", "zebra")],
)
def test_what_is_another_word_is_not_found(word: str, term: str) -> None:
    assert similarity(word, term) == 0
    assert near(word, [(term, 9)], limit=9) == []


def test_a_long_word_may_have_two_mistakes_if_nothing_fits_with_one() -> None:
    assert near("scholrashpi", [("scholarship", 1), ("school", 99)], limit=3) == [("scholarship", 1)]
    assert near("comitee", [("committee", 9)], limit=3) == []
    assert near("tournamant", [("tournament", 1), ("tournamand", 99), ("turnament", 99)], limit=3) == [
        ("tournamand", 99),
        ("tournament", 1),
    ]


def test_the_mistakes_that_fingers_make_are_more_alike() -> None:
    swapped, doubled = similarity("gradne", "garden"), similarity("gardden", "garden")
    beside, elsewhere = similarity("garsen", "garden"), similarity("garpen", "garden")
    assert swapped == 0 < elsewhere < beside < doubled < 1 == similarity("garden", "garden")
    assert similarity("gadren", "garden") > beside
    assert 0 < similarity("farden", "garden") < similarity("garfen", "garden")


def test_ties_go_to_the_more_frequent_term_then_to_the_alphabet() -> None:
    assert near("wark", [("walk", 5), ("work", 500), ("bark", 5)], limit=9)[0] == ("work", 500)
    assert near("bxat", [("beat", 5), ("boat", 5), ("brat", 5)], limit=2) == [("beat", 5), ("boat", 5)]


def test_a_term_that_nothing_holds_and_the_words_own_are_not_among_those_found() -> None:
    assert near("garden", [("garden", 5), ("gardne", 0), ("warden", 1)], limit=9) == [("warden", 1)]
    assert near("garden", [], limit=9) == []


@pytest.mark.parametrize(
    ("word", "expected"),
    [("abc", True), ("é", False), ("ab", False), ("mp3", False), ("don't", False), ("река", True), ("a" * 41, False)],
)
def test_only_words_of_letters_can_be_mistyped(word: str, expected: bool) -> None:
    assert is_spellable(word) is expected


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("aprty", "party"),
        ("qarty", "party"),
        ("arty", "party"),
        ("ppaarty", "paarty"),
        ("ерка", "река"),
        ("ιθάκη", "θάκη"),
    ],
)
def test_a_mistake_in_the_head_is_among_the_spellings(word: str, meant: str) -> None:
    assert meant in spellings(word)


def test_letters_of_an_alphabet_that_is_not_known_are_swapped_and_taken_away() -> None:
    assert {"אבגדה"[1:], "באגדה"} <= set(spellings("אבגדה"))


@given(WORDS, WORDS)
def test_the_distance_is_the_same_in_both_directions_and_zero_for_equals_alone(one: str, other: str) -> None:
    assert distance(one, other, 2) == distance(other, one, 2)
    assert (distance(one, other, 2) == 0) == (one == other)
    assert distance(one, other, 1) == min(2, distance(one, other, 2))


@given(WORDS, st.data())
def test_one_mistake_is_a_distance_of_one(word: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(word) - 1))
    wrong = data.draw(st.sampled_from(MISTAKES))(word, place, data.draw(st.sampled_from("abcd")))
    assert distance(wrong, word, 2) == (0 if wrong == word else 1)


@given(st.text("abcdy", min_size=4, max_size=10), st.data())
def test_where_to_look_misses_no_single_mistake_in_a_term(term: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(term) - 1))
    word = data.draw(st.sampled_from(MISTAKES))(term, place, data.draw(st.sampled_from("abcd")))
    if stem(term) == term and len(word) >= 4:
        least, most = term_lengths(word)
        in_head = term.startswith(head(word)) and least <= len(term) <= most
        assert in_head or term in spellings(word)


@given(st.text(max_size=12), st.lists(st.tuples(st.text(min_size=1, max_size=12), st.integers(0, 9)), max_size=5))
def test_any_word_may_be_compared(word: str, candidates: list[tuple[str, int]]) -> None:
    found = near(word, candidates, limit=3)
    assert len(found) <= 3
    assert set(found) <= set(candidates)
    assert all(0 < similarity(word, term) <= 1 for term, _ in found)
