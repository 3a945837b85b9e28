"""What leaves a project unasked: only what is plainly about the person."""

from pathlib import Path

import pytest

from kalito_mcp.domain.records import Reach
from kalito_mcp.pins.person import is_about_the_person
from kalito_mcp.pins.reach import reach_of

_LINES = (Path(__file__).parent / "said_in_projects.tsv").read_text(encoding="utf-8").splitlines()[1:]
SAID = [tuple(line.split("\t")) for line in _LINES]
KEPT_IN_DOUBT = 6
"""Sentences about the person that stay in the project: of a language without rules, of today, or too long-winded."""


def test_nothing_that_belongs_to_a_project_leaves_it() -> None:
    left = [text for reach, _, text in SAID if reach == "project" and reach_of(text, has_project=True) is Reach.PERSON]
    assert left == []


def test_most_of_what_is_about_the_person_is_known_everywhere() -> None:
    about = [text for reach, _, text in SAID if reach == "person"]
    kept = [text for text in about if reach_of(text, has_project=True) is not Reach.PERSON]
    assert (len(about), len(kept)) == (19, KEPT_IN_DOUBT)


@pytest.mark.parametrize(
    ("plain", "in_doubt"),
    [
        ("I'm lactose intolerant.", "We have three vegans and one nut allergy at the offsite."),
        ("I don't eat pork.", "I don't use tabs."),
        ("Allergic to penicillin", "The main character is allergic to cats."),
        ("My knee is bad, no stairs for me.", "My eyes are on the budget."),
        ("We live in Ghent.", "We live in fear of the linter."),
        ("My daughter Lena started school in August.", "My dad has the master tapes of the album."),
        ("My husband and I live in Ghent.", "My aunt has 40% of the company."),
        ("We have two kids, so mornings are slow.", "We have two children processes."),
        ("Please call me Sam.", "Call the client Hartmann."),
        ("I'm a native Portuguese speaker.", "The narrator is a native speaker."),
        ("Always answer in English.", "Always answer in English here."),
        ("Be brief.", "Be brief in the commit messages."),
        ("Keep your answers short.", "Answer all tickets within four hours."),
        ("No emojis please", "No emojis in the UI copy"),
        ("I hate bullet points.", "I want explanations in the margins."),
        ("When you explain, start with the result.", "Explain to the reader what a nonce is."),
        ("Can you use metric with me?", "Speak with me before touching the config."),
        ("Ich bin allergisch gegen Nüsse.", "Die Heldin ist allergisch gegen Nüsse."),
        ("I'm diabetic. He is not.", "I'm diabetic. Hartmann pays 1.2M."),
        ("btw I live in Tromsø", "I live in the release notes of this client."),
    ],
)
def test_a_plain_sentence_is_about_the_person_and_its_like_is_not(plain: str, in_doubt: str) -> None:
    assert is_about_the_person(plain)
    assert not is_about_the_person(in_doubt)
