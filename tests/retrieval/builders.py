"""Builders for the tests of retrieval: questions, candidates, stubs and a ranker."""

from collections.abc import Mapping

from kalito_mcp.domain.records import RecordType, Role
from kalito_mcp.domain.search import Candidate, CandidateStub, Posting
from kalito_mcp.retrieval.features import AnalyzedText, analyze
from kalito_mcp.retrieval.neighbourhood import Neighbourhood
from kalito_mcp.retrieval.question import Question, parse_question
from kalito_mcp.retrieval.ranking import Ranker
from kalito_mcp.retrieval.term_masks import TermMasks
from kalito_mcp.retrieval.weights import WEIGHTS, FeatureWeights
from tests.scripted import START_MS


def question(text: str, *, max_terms: int = 32, now_ms: int | None = START_MS) -> Question:
    return parse_question(text, max_terms=max_terms, now_ms=now_ms)


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


def stub(
    key: int,
    *,
    session: int | None = 1,
    seq: int | None = None,
    tokens: int = 8,
    name: str | None = None,
    is_admitted: bool = True,
) -> CandidateStub:
    """A stub of a message. Its seq is its key unless given."""
    return CandidateStub(key, session, key if seq is None else seq, tokens, name, is_admitted)


def analyzed_text(query: str, text: str, *, role: Role | None = Role.USER, name: str | None = None) -> AnalyzedText:
    return analyzed(question(query), candidate(text, role=role, name=name))


def analyzed(asked: Question, said: Candidate) -> AnalyzedText:
    [read] = analyze(asked, [said])
    return read


def ranker(
    asked: Question,
    *candidates: Candidate,
    weights: FeatureWeights = WEIGHTS,
    similarities: Mapping[int, float] | None = None,
    admitted: frozenset[int] | None = None,
) -> Ranker:
    """A ranker of candidates that are turns of one session. Each term and kind weighs 1."""
    found = analyze(asked, candidates)
    postings = [
        *(
            Posting(term, tuple(read.candidate.key for read in found if term in read.counts), is_complete=True)
            for term in asked.terms
        ),
        *(
            Posting(kind, tuple(read.candidate.key for read in found if kind in read.hyponyms), is_complete=True)
            for kind in asked.hyponyms
        ),
    ]
    stubs = [stub(one.key, name=one.name, is_admitted=admitted is None or one.key in admitted) for one in candidates]
    neighbourhood = Neighbourhood(TermMasks(postings, [1.0] * len(postings)), len(asked.terms), stubs)
    return Ranker(asked, dict.fromkeys(asked.terms, 1.0), neighbourhood, weights, similarities or {})
