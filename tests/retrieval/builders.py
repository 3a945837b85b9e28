"""What the tests of the search are made of: questions, candidates and places as a lookup has them."""

from collections.abc import Mapping

from kalito_mcp.domain.records import RecordType, Role
from kalito_mcp.domain.search import Candidate, Place, Posting
from kalito_mcp.retrieval.features import Reading, readings
from kalito_mcp.retrieval.neighbourhood import Holdings, Surroundings
from kalito_mcp.retrieval.question import Question, read
from kalito_mcp.retrieval.ranking import Ranking
from kalito_mcp.retrieval.weights import WEIGHTS, EvidenceWeights
from tests.scripted import START_MS


def question(text: str, *, most_terms: int = 32, now_ms: int | None = START_MS) -> Question:
    return read(text, most_terms=most_terms, now_ms=now_ms)


def candidate(
    text: str, key: int = 1, *, role: Role | None = Role.USER, name: str | None = None, created_at: int = START_MS
) -> Candidate:
    return Candidate(
        key=key,
        record_id=f"msg_{key}",
        type=RecordType.MESSAGE,
        session_id="trip",
        role=role,
        name=name,
        text=text,
        created_at=created_at,
        seq=key,
        client_key=None,
    )


def place(
    key: int,
    *,
    session: int | None = 1,
    seq: int | None = None,
    tokens: int = 8,
    name: str | None = None,
    is_admitted: bool = True,
) -> Place:
    """Where a record stands: as the message of its number, unless it is said to be elsewhere."""
    return Place(key, session, key if seq is None else seq, tokens, name, is_admitted)


def reading_of(query: str, text: str, *, role: Role | None = Role.USER, name: str | None = None) -> Reading:
    return reading(question(query), candidate(text, role=role, name=name))


def reading(asked: Question, said: Candidate) -> Reading:
    [read] = readings(asked, [said])
    return read


def ranking(
    asked: Question,
    *candidates: Candidate,
    weights: EvidenceWeights = WEIGHTS,
    likeness: Mapping[int, float] | None = None,
    admitted: frozenset[int] | None = None,
) -> Ranking:
    """A ranking of candidates that are turns of one session; each term and kind weighs 1."""
    found = readings(asked, candidates)
    postings = [
        *(
            Posting(term, tuple(read.candidate.key for read in found if term in read.counts), is_complete=True)
            for term in asked.terms
        ),
        *(
            Posting(kind, tuple(read.candidate.key for read in found if kind in read.kinds), is_complete=True)
            for kind in asked.kinds
        ),
    ]
    places = [place(one.key, name=one.name, is_admitted=admitted is None or one.key in admitted) for one in candidates]
    surroundings = Surroundings(Holdings(postings, [1.0] * len(postings)), len(asked.terms), places)
    return Ranking(asked, dict.fromkeys(asked.terms, 1.0), surroundings, weights, likeness or {})
