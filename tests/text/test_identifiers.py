"""An identifier is found however it is written, and never as a part of a longer one."""

from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.text.identifiers import identifier_key, identifier_keys, may_contain

WRITTEN = [
    ("471-22-9036", "The badge is 471229036."),
    ("471229036", "My badge is 471-22-9036, ok"),
    ("471229036", "it is 471 22 9036 I think"),
    ("471-22-9036", "471\u201122\u20119036"),
    ("ACME-1", "ticket acme 1 is done"),
    ("ACME-1", "that is ACME-1's fault"),
    ("ACME-1", "АСМЕ-1"),  # Cyrillic
    ("550e8400-e29b-41d4-a716-446655440000", "id 550E8400E29B41D4A716446655440000."),
    ("550e8400e29b41d4a716446655440000", "id=550e8400-e29b-41d4-a716-446655440000"),
    ("leo@example.org", "write to Leo@Example.org."),
    ("555-010-4567", "call +1 (555) 010-4567 now"),
    ("(555) 010-4567", "call 5550104567"),
    ("555 010 4567", "(555)010-4567"),
    ("aa:bb:cc:dd:ee:0f", "the card is AA-BB-CC-DD-EE-0F"),
    ("NO93 8601 1117 947", "IBAN NO9386011117947"),
    ("sesame", "The word is Sesame!"),
    ("555-0199", "number 555\u200b-0199"),
]
OTHER = [
    ("ACME-1", "ticket ACME-12"),
    ("ACME-1", "ticket ACME-1-2"),
    ("ACME", "ticket ACME-1"),
    ("leo@example.org", "write to anna.leo@example.org"),
    ("+1 (555) 010-4567", "call 555-010-4567"),
    ("1111 2222", "4111 1111 2222 3333"),
    ("Oslo", "The Oslofjord is deep."),
    ("12-34", "12, 34 and 56"),
    ("12-34", "It ended at 12. 34 people came."),
]


def test_an_identifier_is_found_in_every_way_of_writing_it() -> None:
    for identifier, text in WRITTEN:
        assert identifier_key(identifier) in identifier_keys(text)
        assert may_contain(text, identifier_key(identifier))


def test_a_part_of_a_longer_identifier_is_another_one() -> None:
    for identifier, text in OTHER:
        assert identifier_key(identifier) not in identifier_keys(text)


@given(st.from_regex(r"[A-Z0-9]{2,5}(?:[-._][A-Z0-9]{1,5}){0,3}", fullmatch=True))
def test_every_identifier_is_in_a_sentence_that_has_it(identifier: str) -> None:
    for text in (identifier, f"So {identifier}, then.", f"({identifier.lower()})", identifier.replace("-", "")):
        assert identifier_key(identifier) in identifier_keys(text)


@given(st.text(max_size=200), st.text(min_size=1, max_size=10))
def test_what_is_found_may_be_contained(text: str, identifier: str) -> None:
    key = identifier_key(identifier)
    assert key not in identifier_keys(text) or may_contain(text, key)
