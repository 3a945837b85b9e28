"""Names of secrets inside a value that is no secret are judged a few times, not at each place."""

import pytest

from kalito_mcp.safety import secret_names
from kalito_mcp.safety.redaction import redact


@pytest.mark.parametrize("name", ["key=", "token=", "secret=", "a1=key=", "AccessKey=", "key = value\n"])
def test_a_long_row_of_names_is_judged_in_few_places(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[int] = []
    judge = secret_names._is_secret

    def counted(rule: str, value: str) -> bool:
        judged.append(len(value))
        return judge(rule, value)

    monkeypatch.setattr(secret_names, "_is_secret", counted)
    text = name * 20_000
    assert redact(text).text == text
    assert 0 < sum(judged) <= 6 * len(text)
    assert "value" in name or len(judged) < len(text) / 50
