"""A model whose files an installed package contains. They are read and laid out once; the package's code is not run."""

import struct
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final, TypeVar
from zipfile import BadZipFile

from kalito_mcp.errors import ModelUnavailable
from kalito_mcp.inference.in_process import OpenedModel

_DAMAGED: Final = (
    *(AttributeError, TypeError, ValueError, LookupError, OSError),
    *(EOFError, BadZipFile, struct.error, zlib.error),
)
_TOLERANCE: Final = 0.005
_Model = TypeVar("_Model", bound=OpenedModel)


@dataclass(frozen=True, slots=True)
class Probe:
    """A few texts, and the cosines of the first with the others. They depend on the weights and on how texts are split:
    a model that makes others is not the one of the fingerprint."""

    texts: Sequence[str]
    cosines: Sequence[float]

    def is_passed_by(self, model: OpenedModel) -> bool:
        """Blocks. Whether the model makes these cosines."""
        import numpy as np  # noqa: PLC0415 - by now it is there

        with np.errstate(all="ignore"):  # zeros in a damaged file
            rows = np.concatenate([*model.rows(self.texts)])
            return bool(abs(rows[1:] @ rows[0] - self.cosines).max() <= _TOLERANCE)


def folder_of(package: str) -> Path | None:
    """Where the package is installed, as it is imported. None if it is not."""
    spec = find_spec(package)
    return Path(spec.submodule_search_locations[0]) if spec and spec.submodule_search_locations else None


def checked_model(open_files: Callable[[bool], _Model], probe: Probe, folder: Path, *, again: str) -> _Model:
    """The model that `open_files` opens, if it passes the probe. With True, that lays the files out first.

    Raises:
        ModelUnavailable: the files cannot be read, or belong to another model; `again` says how to install it.
    """
    with suppress(*_DAMAGED):
        laid_out = open_files(False)
        if probe.is_passed_by(laid_out):
            return laid_out
    # The laid out files are damaged, or from another release.
    try:
        model = open_files(True)
        is_right = probe.is_passed_by(model)
    except _DAMAGED as error:
        reason = f"the model in {folder} cannot be read ({type(error).__name__}); install it again: {again}"
        raise ModelUnavailable(reason) from error
    if not is_right:
        raise ModelUnavailable(f"{folder} contains another model; install it again: {again}")
    return model
