"""What a person says of how a project is worked on is pinned; what only sounds like it is not."""

import pytest

from kalito_mcp.domain.records import Role
from kalito_mcp.pins.automatic import find_pins
from tests.pins.test_automatic import _message


@pytest.mark.parametrize(
    "said",
    [
        "Our rule for branches: one ticket, one branch",
        "House rules: no tabs, no trailing spaces, British spelling",
        "Every table gets an owner column, that's a rule.",
        "We ship on Wednesdays, never on Fridays.",
        "We only merge with two approvals.",
        "we deploy only from the main branch",
        "I never run migrations by hand.\nI never run the migrations on a Friday",
        "I use fish, not bash, on this machine",
        "tabs always please, also in yaml",
        "prefix every metric with shop_ from now on",
        "No Kafka in this project, two services do not need it",
        "no personal data ever leaves the building, only aggregates",
        "Invoices must never be deleted.",
        "backups have to be kept for seven years",
        "I want docstrings in every public function",
        "The freeze is always the last week of the quarter, write that down",
        "Remember: the sandbox forgets everything at night",
        "staging is shop-stg.example.internal, port 8443",
        "the dashboard is at https://grafana.example.org/d/1",
        "We upgraded the whole cluster to Postgres 17",
        "Marta owns the payment module",
        "the contact person at the bank is Hugo Brandt",
        "we stay with Django and drop the rewrite",
        "nothing of it goes public before May, decided",
        "My cello lesson is thursdays at 11",
        "I can't abide coriander.",
        "My accountant is Petra",
    ],
)
def test_a_rule_or_fact_of_the_work_is_pinned(said: str) -> None:
    assert find_pins(_message(said, Role.USER)), said


@pytest.mark.parametrize(
    "said",
    [
        "that's my rule",
        "The rules of this game are confusing",
        "No complaints anymore!",
        "use this one from now on",
        "I never know what to cook",
        "We always have fun at your place",
        "You must be so proud of them",
        "That must be hard",
        "We upgraded to 17 before Christmas",
        "Do we deploy only on Fridays?",
        "Should we only merge with two approvals",
        "I want to be there in every case",
        "Remember when we went to the lake, that was fun",
        "it is on the table at home",
        "explain it like I'm a designer",
        "I always liked rainy days",
        "She never goes to bed early",
    ],
)
def test_what_only_sounds_like_it_is_not_pinned(said: str) -> None:
    assert [pin.content for pin in find_pins(_message(said, Role.USER))] == []
