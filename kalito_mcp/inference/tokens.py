"""Token counters: how long a text is for a language model.

`calibrated` is the default: it needs no package, file or network, and rather counts too high. `chars` is the
specification's formula, kept for compatibility. `tiktoken` counts with a real vocabulary and never downloads one.

As `TokenCounter` demands, the counts of all three add up over lines. All three count in linear time.
"""

import os
import re
from importlib import import_module
from pathlib import Path
from typing import Final, Protocol, cast

from kalito_mcp.domain.wording import did_you_mean
from kalito_mcp.errors import ConfigurationError
from kalito_mcp.inference.token_calibration import HUNDREDTHS, estimate
from kalito_mcp.ports.tokens import SAFETY_FACTOR, TokenCounter

TOKENS_PER_CHAR: Final = 0.75
DEFAULT_ENCODING: Final = "o200k_base"

_THOUSAND: Final = 1000
_SCALE: Final = _THOUSAND * HUNDREDTHS
_MIN_SAFETY_FACTOR: Final = 0.5
_MAX_SAFETY_FACTOR: Final = 5.0
_MAX_TOKENS_PER_CHAR: Final = 10.0
_TIKTOKEN: Final = "tiktoken"
# tiktoken's other encodings are these with more special tokens, and have no file of their own.
_ENCODINGS: Final = ("o200k_base", "cl100k_base", "p50k_base", "r50k_base")
_VOCABULARY_URL: Final = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"
_LINE: Final = re.compile(r"([^\n]+)(\n*)")
# tiktoken's splitter recurses on long runs of one kind of character.
_PIECE_CHARS: Final = 8192
_TAIL_CHARS: Final = 16


class CharsCounter:
    """The specification's estimate: `ceil(characters * tokens_per_char)`, where a character is a code point."""

    def __init__(self, tokens_per_char: float = TOKENS_PER_CHAR) -> None:
        """The rate is rounded to a thousandth. Raises ConfigurationError outside [0, 10]."""
        self._rate = _thousandths("tokens_per_char", tokens_per_char, minimum=0.0, maximum=_MAX_TOKENS_PER_CHAR)

    @property
    def name(self) -> str:
        """`chars`."""
        return "chars"

    def count(self, text: str) -> int:
        """Tokens of the text, rounded up; 0 for the empty text."""
        return -(-len(text) * self._rate // _THOUSAND)


class CalibratedCounter:
    """The calibrated estimate times a safety factor, rounded up once for each text."""

    def __init__(self, safety_factor: float = SAFETY_FACTOR) -> None:
        """The factor is rounded to a thousandth. Raises ConfigurationError outside [0.5, 5]."""
        self._factor = _thousandths(
            "safety_factor", safety_factor, minimum=_MIN_SAFETY_FACTOR, maximum=_MAX_SAFETY_FACTOR
        )

    @property
    def name(self) -> str:
        """`calibrated`."""
        return "calibrated"

    @property
    def safety_factor(self) -> float:
        """The factor that the estimate is multiplied by."""
        return self._factor / _THOUSAND

    def count(self, text: str) -> int:
        """Tokens of the text, at least 1; 0 for the empty text."""
        return -(-estimate(text) * self._factor // _SCALE)


class _Encoding(Protocol):
    def encode_ordinary(self, text: str) -> list[int]: ...


class TiktokenCounter:
    """Counts with a vocabulary of tiktoken, line by line.

    Line by line, because a vocabulary merges across line ends depending on both sides, and with a BPE the whole may be
    longer than its parts. Here a line's count depends only on the line and the line ends after it. Up to two of these
    merge with the line's last signs, as in ".\\n\\n", if that is shorter. On prose and code the result is some per cent
    above the count of the whole text.
    """

    def __init__(self, encoding: str = DEFAULT_ENCODING) -> None:
        """Load the vocabulary from tiktoken's cache folder.

        Raises:
            ConfigurationError: no such encoding, tiktoken is not installed, or the vocabulary is not in the cache;
                nothing was downloaded.
        """
        self._encoding = _load_encoding(encoding)
        self._name = f"{_TIKTOKEN}:{encoding}"

    @property
    def name(self) -> str:
        """`tiktoken:<encoding>`."""
        return self._name

    def count(self, text: str) -> int:
        """Tokens of the text, 0 for the empty text. Special tokens are counted as plain text."""
        lines = text.lstrip("\n")
        total = len(text) - len(lines)
        for match in _LINE.finditer(lines):
            line, ends = match.groups()
            total += self._count_line(line) + self._count_ends(line, len(ends))
        return total

    def _count_line(self, line: str) -> int:
        encode = self._encoding.encode_ordinary
        if len(line) <= _PIECE_CHARS:
            return len(encode(line))
        return sum(len(encode(line[start : start + _PIECE_CHARS])) for start in range(0, len(line), _PIECE_CHARS))

    def _count_ends(self, line: str, ends: int) -> int:
        """What `ends` line ends add to the line: the minimum of merging none, one or two of them.

        One more line end never adds more than 1. That is why counts add up, whatever the vocabulary.
        """
        if not ends:
            return 0
        if line[-1].isalnum():
            return max(1, ends - 1)
        encode = self._encoding.encode_ordinary
        tail = _tail(line)
        alone = len(encode(tail))
        return min(len(encode(tail + "\n" * merged)) - alone + ends - merged for merged in range(min(ends, 2) + 1))


def token_counter(name: str, *, safety_factor: float = SAFETY_FACTOR) -> TokenCounter:
    """The counter of that name: `calibrated`, `chars`, `tiktoken` (o200k_base) or `tiktoken:<encoding>`.

    `safety_factor` is for `calibrated` only.

    Raises:
        ConfigurationError: no such name, or the vocabulary of tiktoken cannot be loaded.
    """
    if name == "calibrated":
        return CalibratedCounter(safety_factor)
    if name == "chars":
        return CharsCounter()
    kind, colon, encoding = name.partition(":")
    if kind == _TIKTOKEN and (encoding or not colon):
        return TiktokenCounter(encoding or DEFAULT_ENCODING)
    known = ("calibrated", "chars", _TIKTOKEN, *(f"{_TIKTOKEN}:{encoding}" for encoding in _ENCODINGS))
    raise ConfigurationError(f"no token counter {name!r}{did_you_mean(name, known)}")


def _thousandths(parameter: str, value: float, *, minimum: float, maximum: float) -> int:
    """The value in whole thousandths: counts in integers have no rounding error that could break additivity."""
    if not minimum <= value <= maximum:
        raise ConfigurationError(f"{parameter}={value} is not between {minimum} and {maximum}")
    return round(value * _THOUSAND)


def _tail(line: str) -> str:
    """The signs after the line's last letter or digit, at most the last 16."""
    start = len(line)
    while start > max(0, len(line) - _TAIL_CHARS) and not line[start - 1].isalnum():
        start -= 1
    return line[start:]


def _load_encoding(encoding: str) -> _Encoding:
    if encoding not in _ENCODINGS:
        raise ConfigurationError(f"no tiktoken encoding {encoding!r}{did_you_mean(encoding, _ENCODINGS)}")
    try:
        tiktoken = import_module(_TIKTOKEN)
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"the token counter {_TIKTOKEN}:{encoding} needs an extra: pip install 'kalito-mcp[tiktoken]'; "
            "or use calibrated, which needs no extra"
        ) from error
    # Checked first, because tiktoken would download a missing file, without a time limit.
    if _cached_vocabulary(encoding).is_file():
        try:
            return cast("_Encoding", tiktoken.get_encoding(encoding))
        except (OSError, ValueError) as error:
            raise _no_vocabulary(encoding) from error
    raise _no_vocabulary(encoding)


def _cached_vocabulary(encoding: str) -> Path:
    """Where tiktoken keeps the vocabulary, by its own rules."""
    import hashlib  # noqa: PLC0415  only this counter needs it
    import tempfile  # noqa: PLC0415

    folder = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR"))
    if folder is None:
        folder = str(Path(tempfile.gettempdir()) / "data-gym-cache")
    file_name = hashlib.sha1(_VOCABULARY_URL.format(encoding).encode(), usedforsecurity=False).hexdigest()
    return Path(folder) / file_name


def _no_vocabulary(encoding: str) -> ConfigurationError:
    return ConfigurationError(
        f"the vocabulary {encoding} is not in tiktoken's cache ({_cached_vocabulary(encoding).parent}) and is not "
        "downloaded; set TIKTOKEN_CACHE_DIR to a folder that has it (on a machine with a network, "
        f"tiktoken.get_encoding({encoding!r}) fills that folder), or use the token counter calibrated"
    )
