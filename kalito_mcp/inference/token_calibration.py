"""How many tokens a text probably has, from the shapes in its bytes. Pure.

It neither splits the text into words nor has a vocabulary. The UTF-8 bytes are mapped to some two dozen classes
(`bytes.translate`), and the estimate is a weighted sum of the counts of short patterns of classes (`bytes.count`). Both
run at the speed of C, and the time is linear in the length of any text.

The weights were found on 2026-11-21: forward selection of patterns and least squares on the relative error (an
under-count weighs 2 to 2.5 times as much; beyond 25 % over, the loss grows linearly), on 8,800 ASCII and 11,600 other
texts of 120 kinds: chat, assistant answers, source code, markup, JSON, logs, stack traces, identifiers, hashes, tables,
and prose in 60 languages. The target was o200k_base; beyond ASCII it was the geometric mean of o200k_base and
cl100k_base, at most 1.2 times the former, because other vocabularies spend more there. Scripts too rare to measure
carry what o200k_base spends on a lone character.

The result, estimate / o200k_base as median [5 %, 95 %]: chat 1.03 [0.95, 1.09], long answers 1.04 [0.94, 1.13],
Python 1.01 [0.88, 1.15]; everyday Chinese 1.3, Russian 1.6, Arabic 1.5, Hindi 1.5. Older vocabularies need twice
as many or more for Russian, Arabic, Hindi or Thai: raise the safety factor for them. Random signs and random lower-case
letters are counted too low. `python -m bench.token_counters` measures again.
"""

from typing import Final

HUNDREDTHS: Final = 100
"""Weights are whole hundredths of a token: sums are exact, and no rounding breaks additivity."""

# Deleting them leaves one byte, the lead byte, for each character.
_CONTINUATION: Final = bytes(range(0x80, 0xC0))
_LOWER: Final = bytes(range(ord("a"), ord("z") + 1))
_UPPER: Final = bytes(range(ord("A"), ord("Z") + 1))
# Latin beyond ASCII up to Arabic, the Indic and Thai block, Georgian to Vietnamese, Hangul: they write words.
_ALPHABETS: Final = bytes((*range(0xC3, 0xE2), *range(0xEA, 0xEE)))


def _classes(default: bytes, *members: tuple[bytes, bytes]) -> bytes:
    """A table for `bytes.translate` that maps each group's bytes to its class, all others to the default."""
    table = bytearray(default * 256)
    for octets, name in members:
        for octet in octets:
            table[octet] = ord(name)
    return bytes(table)


# '.' is any other sign; '-' the signs that rules are drawn with; small letters after 'a' are scripts.
_SHAPES: Final = _classes(
    b".",
    (_LOWER, b"a"),
    (_UPPER, b"A"),
    (b"0123456789", b"0"),
    (b" \r", b" "),
    (b"\t", b"T"),
    (b"\n", b"N"),
    (b"'", b"'"),
    (b"-=*#_~", b"-"),
    (b"\xc2\xc3", b"l"),
    (b"\xc4\xc5", b"e"),
    (bytes(range(0xC6, 0xCE)), b"i"),
    (b"\xce\xcf", b"g"),
    (b"\xd0\xd1\xd2\xd3", b"c"),
    (b"\xd4\xd5", b"m"),
    (b"\xd6\xd7", b"h"),
    (b"\xd8\xd9\xda\xdb", b"r"),
    (b"\xdc\xdd\xde\xdf", b"s"),
    (b"\xe0", b"d"),
    (b"\xe1", b"t"),
    (b"\xe2", b"q"),
    (b"\xe3", b"j"),
    (bytes(range(0xE4, 0xEA)), b"z"),
    (bytes(range(0xEA, 0xEE)), b"k"),
    (b"\xee", b"p"),
    (b"\xef", b"f"),
    (bytes(range(0xF0, 0x100)), b"o"),
)
# The apostrophe is a letter here: "don't" is one word to every vocabulary.
_WORDS: Final = _classes(b" ", (_LOWER + _UPPER + b"'" + _ALPHABETS, b"a"))
# Consonants, the rare ones apart: clusters of them fill keys and hashes, not words. The vowels that end few English
# words: with a consonant before them, they mark the languages that vocabularies know less well.
_SOUNDS: Final = _classes(
    b" ",
    (b"aiouAIOU", b"v"),
    (b"eyEY", b"w"),
    (b"bcdfghlmnprstBCDFGHLMNPRST", b"b"),
    (b"jkqvwxzJKQVWXZ", b"x"),
)

# A word this long is a key, or several words in one.
_LONG_LOWER: Final = b"a" * 16
_LONG_UPPER: Final = b"A" * 16

# For each script: its class, hundredths of a token that a character adds to those of its words, and blocks that differ.
_SCRIPTS: Final = tuple(
    (
        script.encode(),
        int(weight),
        tuple((bytes.fromhex(block.partition(":")[0]), int(block.partition(":")[2])) for block in blocks),
    )
    for script, weight, *blocks in map(
        str.split,
        (
            "l 164 c2:135",  # Latin-1: the accents also pay for the long words around them; its signs
            "e 173",  # Latin of central Europe and Turkey
            "i 94",  # further Latin, phonetic, combining marks
            "g 32",  # Greek
            "c 21",  # Cyrillic
            "m 33",  # Armenian
            "h 34",  # Hebrew
            "r 22",  # Arabic
            "s 200",  # Syriac, Thaana, N'Ko
            # Indic scripts; Gurmukhi, Oriya, Thai, Lao, Tibetan
            "d 23 e0a8:51 e0a9:51 e0ac:100 e0ad:100 e0b8:46 e0b9:46 e0ba:190 e0bb:190 e0bc:160 e0bd:160 e0be:160",
            # Ethiopic, Cherokee and many more; Burmese, Georgian, Khmer, Vietnamese
            "t 250 e180:57 e181:57 e183:29 e19e:43 e19f:43 e1ba:0 e1bb:0",
            "q 179 e280:108",  # symbols; typographic punctuation
            "j 78",  # kana, CJK punctuation
            "z 104",  # Han
            "k 51",  # Hangul
            "p 300",  # private use
            "f 200 efb8:33 efbc:33",  # full-width forms; emoji style, CJK punctuation
            "o 350 f09f:247",  # rare scripts; emoji
        ),
    )
)


def estimate(text: str) -> int:
    """The probable number of tokens, in hundredths, before any safety factor; 0 only for the empty text.

    Adds up over lines: `estimate(a + "\\n" + b) <= estimate(a) + estimate("\\n") + estimate(b)`. A lone
    surrogate counts like a character of its block.
    """
    octets = text.encode("utf-8", "surrogatepass")
    # Deleting nothing would cost time too, and most texts are ASCII.
    strip = b"" if text.isascii() else _CONTINUATION
    shapes = octets.translate(_SHAPES, strip)
    # The space marks the start of the text, so that a first word counts like one after a line end.
    words = (b" " + octets).translate(_WORDS, strip).count(b" a")
    shape = shapes.count
    # This space marks the end.
    sound = (octets + b" ").translate(_SOUNDS).count
    # Only patterns of negative weight may cross a line end: a match where two texts meet can then only make the whole
    # smaller than its parts. A discount is smaller than the cost of the signs in its pattern.
    total = (
        95 * words
        - 35 * shape(b"a a")
        + 119 * shape(b"aA")
        + 24 * shape(b"AAAA")
        + 332 * shape(_LONG_LOWER)
        + 337 * shape(_LONG_UPPER)
        + 11 * shape(b"'")
        + 89 * shape(b"0")
        - 165 * shape(b"000")
        + 36 * shape(b" ")
        - 134 * shape(b"    ")
        + 70 * shape(b".")
        - 79 * shape(b"..")
        + 61 * shape(b"-")
        - 230 * shape(b"----")
        + 52 * shape(b".-")
        + 22 * sound(b"x")
        + 234 * sound(b"xx")
        + 145 * sound(b"bbx")
        + 94 * sound(b"xbb")
        + 144 * sound(b"vbv ")
    )
    # Separate, because most messages have neither.
    if "\n" in text or "\t" in text:
        total += 83 * shape(b"N") - 152 * shape(b"NN") + 83 * shape(b"T") - 153 * shape(b"TT")
    if strip:
        total += _beyond_ascii(octets, shapes)
    return total


def _beyond_ascii(octets: bytes, shapes: bytes) -> int:
    """The tokens, in hundredths, that characters of other scripts add."""
    total = 0
    for script, weight, blocks in _SCRIPTS:
        found = shapes.count(script)
        if found:
            total += found * weight
            for prefix, block_weight in blocks:
                total += octets.count(prefix) * (block_weight - weight)
    return total
