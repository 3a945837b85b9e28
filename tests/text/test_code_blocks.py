"""Blocks of code become one-line labels."""

import pytest

from kalito_mcp.text import code_blocks as code_blocks_module
from kalito_mcp.text.code_blocks import FENCE, code_blocks, collapse_code

_BLOCKS = ("py\ndef f(a):\n", "\nmake test\n", "", "1", "py\nx = 1\n")


def test_each_block_has_its_own_label_however_often_it_is_repeated() -> None:
    text = "".join(f"Then {place}: {FENCE}{code}{FENCE}. " for place, code in enumerate(_BLOCKS * 50))
    expected = [f"{prose} {block.label()}\n" if block else prose for prose, block in code_blocks(text)]
    assert collapse_code(text) == "".join(expected)
    assert "[py code: f]" in expected[0]


def test_a_block_that_is_repeated_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    real = code_blocks_module._block
    monkeypatch.setattr(code_blocks_module, "_block", lambda code: read.append(code) or real(code))
    collapse_code(f"{FENCE}py\nx = 1\n{FENCE} or " * 1_000)
    assert read == ["py\nx = 1\n"]
