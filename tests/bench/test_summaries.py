"""What the benchmark of summaries counts as a named fact."""

import pytest

from bench.summaries import flat, measure, named_facts


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("We went to Oslo. It rained.", {"oslo": "name"}),
        ("Ann's dog is called Rex, and Ann paid 240 euros.", {"ann": "name", "rex": "name", "240": "number"}),
        ("Hey Caroline, I'm off!", {}),
        ("We met last Friday, and in May.", {"friday": "date", "may": "date"}),
        ("It was in July, and last week it rained.", {"july": "date", "last week": "date"}),
        ("```python\nclass User: pass\n```", {}),
    ],
)
def test_a_name_a_number_and_a_date_are_facts(text: str, facts: dict[str, str]) -> None:
    assert named_facts(text, frozenset({"caroline"})) == facts


def test_a_fact_is_kept_if_its_summary_has_the_word_and_an_answer_if_it_is_shown() -> None:
    conversation = {
        "turns": [{"speaker": "Ann", "text": "My dog is called Rex and I paid 240 euros."}],
        "questions": [{"answer": "Rex"}, {"answer": "240 euros"}, {"answer": "never said"}],
    }
    counts = measure(conversation, [(0, 1, 1, "Ann: My dog is called Rex.")], "Ann: My dog is called Rex.")
    figures = counts.figures()
    assert figures["level 0"]["kept by kind"] == {"names": 100.0, "numbers": 0.0, "dates": 0.0}
    assert figures["answers"] == {"level 0": 50.0, "level 1": 0.0, "shown": 50.0, "n": 2}


def test_words_are_compared_whole_and_folded() -> None:
    assert flat("Lena’s cat: 10:30!") == " lena cat 10:30 "
