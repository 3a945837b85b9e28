"""The model of every installation: the vectors of the real package, and packages that cannot be used."""

import os
import shutil
import sys
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kalito_mcp.errors import ConfigurationError, ModelUnavailable
from kalito_mcp.inference import mapped_arrays as laid_out
from kalito_mcp.inference.mapped_arrays import mapped_arrays
from kalito_mcp.inference.meaning import MeaningEmbedder
from kalito_mcp.inference.registry import ModelRegistry
from kalito_mcp.inference.sentence_encoder.encoder import Encoder
from kalito_mcp.inference.sentence_encoder.package_files import arrays_of
from kalito_mcp.inference.sentence_encoder.tokens import Tokenizer
from kalito_mcp.ports.embedder import Embedder, VectorPolicy
from tests import meaning_package
from tests.meaning_package import NAME
from tests.scripted import ScriptedClock

pytestmark = pytest.mark.anyio

TEXTS = [
    "Where does my cat sleep?",
    " \n",
    "ﬁve ①  Ｆｕｌｌ width, e\u0301 and a\ttab",
    "नमस्ते, आप कैसे हैं?",
    "مرحبا كيف حالك",
    "こんにちは　世界ｶﾞ",
    "안녕하세요",
    "İstanbul'da 👍🏽 \u200bx\u200d \x0b\x1c",
    "extra_token_id_1 <s> </s> <unk>",
    "x" * 300,
    "half a \ud83d smile",
]


def embedder(name: str = "auto") -> Embedder | None:
    return ModelRegistry([], ScriptedClock()).embedder(VectorPolicy(name))


def test_without_the_package_there_is_no_embedder_and_a_setting_that_names_it_says_how_to_install_it() -> None:
    assert embedder() is None
    with pytest.raises(ConfigurationError, match=r"needs the package .*: pip install kalito-mcp"):
        embedder("meaning")


@pytest.mark.usefixtures("meaning_installed")
def test_with_the_package_it_is_used_unless_the_settings_say_otherwise() -> None:
    found = embedder()
    assert found is not None
    assert found.fingerprint == "meaning:use-multilingual-3:1"
    assert embedder("none") is None
    assert embedder("") is None


@pytest.mark.usefixtures("meaning_installed")
async def test_the_packages_code_is_not_run() -> None:
    await MeaningEmbedder(VectorPolicy()).embed(["We fly to Oslo."])
    assert NAME not in sys.modules


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
async def test_unrelated_texts_have_cosines_about_as_the_model_states() -> None:
    model = MeaningEmbedder(VectorPolicy())
    subjects = ["The train", "My sister", "This bread", "A lawyer", "The garden", "Our router", "The choir", "Her knee"]
    ends = ["was late on Monday.", "costs forty euros.", "needs water.", "moved to Lyon.", "sounds better now."]
    rows = await model.embed([f"{subject} {end}" for subject in subjects for end in ends])
    queries = await model.embed(["What is my blood group?", "Which book did I lend to Ana?"], is_query=True)
    await model.aclose()

    cosines = rows @ queries.T
    assert cosines.mean() == pytest.approx(model.unrelated.mean, abs=0.05)
    assert cosines.std(axis=0).mean() == pytest.approx(model.unrelated.spread, rel=0.4)


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


@pytest.fixture
def own_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the files of a package that a test may damage. They are laid out in a folder of the test."""
    spec = find_spec(NAME)
    assert spec is not None
    assert spec.origin is not None
    folder = tmp_path / "installed" / NAME
    shutil.copytree(Path(spec.origin).parent, folder)
    monkeypatch.syspath_prepend(folder.parent)
    monkeypatch.setattr(laid_out, "default_cache", lambda: tmp_path / "cache")
    return folder / "resources"


async def refusal() -> str:
    """Why the installed package is refused."""
    model = embedder()
    assert model is not None
    with pytest.raises(ModelUnavailable) as refused:
        await model.embed(["We fly to Oslo."])
    assert "install it again: pip install --force-reinstall kalito-mcp" in str(refused.value)
    return str(refused.value)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("weights.npz", b"", "OSError"),
        ("weights.npz", b"\x00" * 10_000, "ValueError"),
        ("sp.model", b"\x0a\xff", "IndexError"),
    ],
)
@pytest.mark.usefixtures("meaning_installed")
async def test_a_damaged_package_is_refused(own_package: Path, name: str, content: bytes, reason: str) -> None:
    (own_package / name).write_bytes(content)
    assert f"cannot be read ({reason})" in await refusal()
    (own_package / name).unlink()
    assert "cannot be read (FileNotFoundError)" in await refusal()


@pytest.mark.usefixtures("meaning_installed")
async def test_a_package_with_another_model_is_refused(own_package: Path) -> None:
    with np.load(own_package / "weights.npz") as weights:
        changed = {**weights, "p3": -weights["d2"][:, ::-1]}
    np.savez(own_package / "weights.npz", **changed)
    assert "contains another model" in await refusal()


@pytest.mark.usefixtures("meaning_installed")
async def test_what_is_laid_out_is_used_as_it_is_and_made_again_if_it_is_damaged(
    own_package: Path, tmp_path: Path
) -> None:
    texts = ["Where does my cat sleep?"]
    rows = await MeaningEmbedder(VectorPolicy()).embed(texts)
    [file] = (tmp_path / "cache").iterdir()
    written = file.stat()
    np.testing.assert_array_equal(await MeaningEmbedder(VectorPolicy()).embed(texts), rows)
    assert file.stat() == written, "it was not written again"

    whole = file.read_bytes()
    of_another_release = whole.replace(b'"table"', b'"words"', 1)
    for damaged in (of_another_release, whole[: len(whole) // 2] + bytes(len(whole) - len(whole) // 2)):
        file.write_bytes(damaged)
        np.testing.assert_array_equal(await MeaningEmbedder(VectorPolicy()).embed(texts), rows)
        assert file.read_bytes() == whole


def test_without_a_folder_to_write_to_the_arrays_are_in_the_memory_of_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nobodys() -> Path:
        raise RuntimeError("Could not determine home directory.")

    built = {"counts": np.arange(6).reshape(2, 3)}
    (tmp_path / "file").touch()
    for folder in (lambda: tmp_path / "file", nobodys):
        monkeypatch.setattr(laid_out, "default_cache", folder)
        assert mapped_arrays("model", "1", lambda: built) is built


def test_what_is_laid_out_takes_the_place_of_what_there_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(laid_out, "default_cache", lambda: tmp_path)
    built = {"counts": np.arange(6).reshape(2, 3), "one": np.float64(0.5)[...], "none": np.empty((0, 4), np.float32)}
    for content in ("1", "2"):
        found = mapped_arrays("model", content, lambda: built)
        assert found is not built
        for name, array in built.items():
            np.testing.assert_array_equal(found[name], array)
            assert (found[name].dtype, found[name].flags.writeable) == (array.dtype, False)
    [file] = tmp_path.iterdir()
    assert file.name == "model-2.arrays"
    whole = file.read_bytes()
    file.write_bytes(whole[:-100])  # cut short
    np.testing.assert_array_equal(mapped_arrays("model", "2", lambda: built)["one"], built["one"])
    assert file.read_bytes() == whole
    (tmp_path / ".model-2.arrays.0a1b2c3d").touch()
    os.utime(tmp_path / ".model-2.arrays.0a1b2c3d", (0, 0))
    (tmp_path / ".model-2.arrays.ffffffff").touch()
    mapped_arrays("model", "2", lambda: built, must_build=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".model-2.arrays.ffffffff", "model-2.arrays"]


@given(st.lists(st.text(max_size=80) | st.sampled_from(TEXTS), min_size=1, max_size=4))
@example(TEXTS)
def test_the_vectors_are_those_of_the_package_itself(texts: list[str]) -> None:
    tokenizer, encoder, package = opened()
    pieces = [tokenizer.pieces(text) for text in texts]
    whole = [text.encode("utf-8", "replace").decode() for text in texts]
    assert pieces == package._tokenizer.encode(whole)
    np.testing.assert_allclose(encoder.encode(pieces), package.encode(whole), atol=1e-5)


@cache
def opened() -> tuple[Tokenizer, Encoder, Any]:
    """Our reading of the package's files, and the package."""
    meaning_package.show()
    package = import_module(NAME)
    arrays = arrays_of(Path(str(package.__file__)).parent / "resources")
    made = package.USE(threads=1)
    made.encode("It reads its files with the first text.")
    meaning_package.hide()
    return Tokenizer(arrays), Encoder(arrays), made
