"""What merged questions have in common, summarised without a model."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kalito_mcp.orchestrator.cluster_summary import ClusterSummarizer


@pytest.mark.parametrize(
    ("texts", "summary"),
    [
        (["Where is Ann?"], "Where is Ann?"),
        (["Where is Ann?", "where is ann"], "Where is Ann?"),
        (["Where is Ann?", "Where is Ann in Oslo?"], "Where is Ann? (also: in Oslo)"),
        (["Where is Ann?", "Where is Bob?", "Where is Cleo today?"], "Where is Ann? (also: Bob; Cleo today)"),
        (["  Where \n is Ann?  "], "Where is Ann?"),
    ],
)
def test_it_is_the_first_question_and_what_the_others_add(texts: list[str], summary: str) -> None:
    assert ClusterSummarizer().summarize(texts, 200) == summary


def test_what_does_not_fit_is_left_out() -> None:
    texts = ["Where is Ann?", "Where is Bob?", f"Where is {'Cleo ' * 40}?"]
    assert ClusterSummarizer().summarize(texts, 40) == "Where is Ann? (also: Bob)"
    assert len(ClusterSummarizer().summarize(["word " * 100], 40)) <= 40


@given(st.lists(st.text(st.sampled_from("ab cdé1?. ;\n"), min_size=1, max_size=40), min_size=1), st.integers(1, 120))
def test_it_is_never_longer_than_it_may_be(texts: list[str], max_length: int) -> None:
    summary = ClusterSummarizer().summarize(texts, max_length)
    assert len(summary) <= max_length
    assert summary == ClusterSummarizer().summarize(texts, max_length)
