"""What the models in this process share."""

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

from kalito_mcp.inference import in_process


def _threads() -> list[int]:
    return [library["num_threads"] for library in ThreadpoolController().info() if library["user_api"] == "blas"]


def test_a_step_of_the_model_runs_on_one_thread() -> None:
    before = _threads()
    during = []

    def encode(step: list[str]) -> np.ndarray:
        during.append(_threads())
        return np.zeros((len(step), 1), np.float32)

    assert [len(rows) for rows in in_process.in_steps(encode, ["four", "five"], size=4)] == [1, 1]
    assert during == [[1] * len(before)] * 2
    assert _threads() == before


def test_libraries_that_cannot_be_listed_keep_their_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> None:
        raise OSError

    monkeypatch.setattr("threadpoolctl.ThreadpoolController", fails)
    in_process._blas_libraries.cache_clear()
    with in_process.one_blas_thread():
        pass
    in_process._blas_libraries.cache_clear()
