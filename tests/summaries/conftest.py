"""What tests of summaries share."""

from collections.abc import AsyncIterator

import pytest

from tests.summaries.counting_embedder import CountingEmbedder


@pytest.fixture
async def model(meaning_installed: None) -> AsyncIterator[CountingEmbedder]:
    """The model of every installation."""
    embedder = CountingEmbedder()
    yield embedder
    await embedder.aclose()
