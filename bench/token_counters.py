"""How close the token counters come to real vocabularies, by kind of text, and how fast they are.

The vocabularies are o200k_base, cl100k_base and the one that Anthropic published in 2023. They are read offline from an
installed litellm wheel; without it the line says `skipped`. For each kind of text and each vocabulary there are the
median, 5th and 95th percentile of counted / true, and the share of texts that were counted too low. `calibrated`
appears twice: as estimated (`raw`) and with its safety factor (`safe`).

Without `--data` the texts are made here or come from the standard library. With it they are the turns of the files,
{"conversations": [{"turns": [{"text": ...}]}]}.
"""

import base64
import importlib.util
import json
import os
import random
import sys
import sysconfig
import timeit
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from bench.report import emit, options, percentile, progress
from kalito_mcp.inference.tokens import CalibratedCounter, CharsCounter, TiktokenCounter
from kalito_mcp.ports.tokens import TokenCounter

_ENCODINGS: Final = ("o200k_base", "cl100k_base")
_SEED: Final = 20261121
_TEXTS: Final = 200
_QUICK_TEXTS: Final = 40
_LONGEST: Final = 20_000
_MESSAGE_CHARS: Final = 100
_SPEED_CHARS: Final = 1_000_000

# Two plain sentences for each script.
_SCRIPTS: Final = {
    "german": (
        "Meine Schwester zieht im Herbst nach Leipzig, weil sie dort eine Stelle im Krankenhaus gefunden hat.",
        "Kannst du bitte die Rechnungen vom letzten Monat überprüfen und mir bis Freitag Bescheid geben?",
    ),
    "french": (
        "Nous avons réservé une petite maison près de la mer pour la deuxième semaine de juillet.",
        "Est-ce que tu pourrais relire le brouillon du contrat avant la réunion de demain matin ?",
    ),
    "spanish": (
        "Mi hermano está aprendiendo a tocar la guitarra y practica todas las noches después de cenar.",
        "¿Podrías recordarme mañana que tengo que llamar al dentista para cambiar la cita?",
    ),
    "polish": (
        "W przyszłym tygodniu jedziemy w góry, więc musimy jeszcze kupić nowe buty i plecak.",
        "Czy możesz sprawdzić, dlaczego serwer wczoraj wieczorem nie odpowiadał na zapytania?",
    ),
    "turkish": (
        "Annem bu hafta sonu bize gelecek, o yüzden evi toplamamız ve alışveriş yapmamız gerekiyor.",
        "Raporu bugün bitiremezsem yarın sabah erkenden ofise gidip tamamlayacağım.",
    ),
    "indonesian": (
        "Saya sedang belajar memasak rendang dari nenek saya, tetapi bumbunya belum pernah pas.",
        "Tolong ingatkan saya besok pagi untuk mengirim laporan keuangan kepada kantor pusat.",
    ),
    "vietnamese": (
        "Cuối tuần này gia đình tôi sẽ về quê thăm ông bà và ở lại đến sáng thứ hai.",
        "Bạn có thể giúp tôi kiểm tra lại danh sách khách mời trước buổi họp chiều nay không?",
    ),
    "russian": (
        "Вчера мы наконец починили велосипед, и теперь дочка каждый вечер катается во дворе.",
        "Напомни мне, пожалуйста, завтра утром отправить документы в бухгалтерию.",
    ),
    "greek": (
        "Το σαββατοκύριακο θα πάμε στο χωριό για να βοηθήσουμε τον παππού με τις ελιές.",
        "Μπορείς να μου θυμίσεις αύριο να τηλεφωνήσω στον γιατρό για τα αποτελέσματα;",
    ),
    "hebrew": (
        "בשבוע הבא אנחנו עוברים לדירה חדשה, אז צריך לארוז את כל הספרים והבגדים.",
        "תוכל בבקשה להזכיר לי מחר בבוקר לשלוח את המסמכים לרואת החשבון?",
    ),
    "arabic": (
        "سافرنا الأسبوع الماضي إلى مدينة صغيرة قرب البحر وقضينا هناك ثلاثة أيام جميلة.",
        "من فضلك ذكرني غدا صباحا بأن أرسل التقرير إلى المدير قبل الاجتماع.",
    ),
    "hindi": (
        "पिछले हफ़्ते हमने नया घर देखा और बच्चों को उसका छोटा बगीचा बहुत पसंद आया।",
        "कृपया मुझे कल सुबह याद दिलाना कि बैंक जाकर फ़ॉर्म जमा करना है।",
    ),
    "thai": (
        "สุดสัปดาห์นี้เราจะไปเยี่ยมคุณยายที่ต่างจังหวัดและพักอยู่ที่นั่นสองคืน",
        "ช่วยเตือนฉันพรุ่งนี้เช้าให้ส่งเอกสารไปที่สำนักงานด้วยนะ",
    ),
    "chinese": (
        "上个周末我们一家人去爬山，虽然下了一点小雨，但是孩子们玩得非常开心。",
        "请你明天早上提醒我把合同发给客户，下午三点之前还要确认会议室。",
    ),
    "japanese": (
        "先週の日曜日に友達と海へ行って、夕方まで写真を撮ったり貝殻を拾ったりしました。",
        "明日の会議の前に、資料の三ページ目の数字をもう一度確認していただけますか。",
    ),
    "korean": (
        "지난 주말에 가족들과 함께 바닷가에 가서 맛있는 해산물을 먹고 산책도 했어요.",
        "내일 아침에 보고서를 보내는 것을 잊지 않도록 알려 주시겠어요?",
    ),
}
_EMOJI: Final = ("😀", "😂", "❤️", "👍", "🎉", "🔥", "🙏", "👩‍💻", "🇯🇵", "🦔", "🪴", "🏳️‍🌈")


def main() -> int:
    """Print the line. The exit code is 0 even if there are no vocabularies."""
    parser = options(__doc__)
    parser.add_argument("--data", nargs="+", type=Path, metavar="FILE", help="conversations to count instead")
    chosen = parser.parse_args()
    vocabularies = _vocabularies()
    if not vocabularies:
        emit("token_counters", {"skipped": "the litellm wheel, which carries the vocabularies, is not installed"})
        return 0
    kinds = _read(chosen.data) if chosen.data else dict(_made(_QUICK_TEXTS if chosen.quick else _TEXTS))
    figures: dict[str, Any] = {"safety_factor": CalibratedCounter().safety_factor, "speed": _speed()}
    for kind, texts in kinds.items():
        progress(f"{kind}: {len(texts)} texts")
        figures[kind] = _compare(texts, vocabularies)
    emit("token_counters", figures)
    return 0


def _vocabularies() -> dict[str, Callable[[str], int]]:
    """The true counters by name. Empty if litellm, or a library that reads its files, is missing."""
    found = importlib.util.find_spec("litellm")
    if found is None or not found.submodule_search_locations:
        return {}
    folder = Path(found.submodule_search_locations[0]) / "litellm_core_utils" / "tokenizers"
    if not folder.is_dir() or importlib.util.find_spec("tiktoken") is None:
        return {}
    os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
    tiktoken = import_module("tiktoken")
    counts: dict[str, Callable[[str], int]] = {
        name: _length(tiktoken.get_encoding(name).encode_ordinary) for name in _ENCODINGS
    }
    published = folder / "anthropic_tokenizer.json"
    if published.is_file() and importlib.util.find_spec("tokenizers") is not None:
        anthropic = import_module("tokenizers").Tokenizer.from_file(str(published))
        counts["anthropic_2023"] = _length(lambda text: anthropic.encode(text, add_special_tokens=False).ids)
    return counts


def _length(encode: Callable[[str], Sequence[int]]) -> Callable[[str], int]:
    return lambda text: len(encode(text))


def _compare(texts: Sequence[str], vocabularies: Mapping[str, Callable[[str], int]]) -> dict[str, Any]:
    """The figures of one kind of text, by vocabulary."""
    counters: dict[str, TokenCounter] = {
        "raw": CalibratedCounter(1.0),
        "safe": CalibratedCounter(),
        "chars": CharsCounter(),
        "tiktoken": TiktokenCounter(),
    }
    counted = {name: [counter.count(text) for text in texts] for name, counter in counters.items()}
    size = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
    figures: dict[str, Any] = {
        "texts": len(texts),
        "bytes": size,
        "mb_per_s": size / 1e6 / _seconds(lambda: [counters["safe"].count(text) for text in texts]),
    }
    for vocabulary, true_count in vocabularies.items():
        true = [true_count(text) for text in texts]
        figures[vocabulary] = {
            name: _ratios(counts, true)
            for name, counts in counted.items()
            if name != "tiktoken" or vocabulary == _ENCODINGS[0]
        }
    return figures


def _ratios(counts: Sequence[int], true: Sequence[int]) -> dict[str, float]:
    ratios = [count / tokens for count, tokens in zip(counts, true, strict=True)]
    return {
        "median": percentile(ratios, 0.5),
        "p5": percentile(ratios, 0.05),
        "p95": percentile(ratios, 0.95),
        "under": sum(ratio < 1 for ratio in ratios) / len(ratios),
    }


def _speed() -> dict[str, dict[str, float]]:
    """The speed of each counter on English: microseconds for a message of 100 characters, MB/s on a long text."""
    prose = _prose()
    messages = [prose[start : start + _MESSAGE_CHARS] for start in range(0, 50 * _MESSAGE_CHARS, _MESSAGE_CHARS)]
    messages = [" ".join(message.split()).ljust(_MESSAGE_CHARS, ".") for message in messages]
    long = (prose * (_SPEED_CHARS // len(prose) + 1))[:_SPEED_CHARS]
    figures: dict[str, dict[str, float]] = {}
    counters: tuple[TokenCounter, ...] = (CalibratedCounter(), CharsCounter(), TiktokenCounter())
    for counter in counters:
        one_by_one = _seconds(lambda count=counter.count: [count(message) for message in messages])  # type: ignore[misc]
        at_once = _seconds(lambda count=counter.count: count(long))  # type: ignore[misc]
        figures[counter.name] = {
            "us_per_message": one_by_one / len(messages) * 1e6,
            "mb_per_s": len(long) / 1e6 / at_once,
        }
    return figures


def _seconds(work: Callable[[], object]) -> float:
    """The least of five measurements of at least a hundredth of a second each."""
    times, taken = 1, timeit.timeit(work, number=1)
    while taken < 0.01:
        times *= 4
        taken = timeit.timeit(work, number=times)
    return min(taken, *timeit.repeat(work, number=times, repeat=4)) / times


def _read(files: Sequence[Path]) -> dict[str, list[str]]:
    """The turns of each file, by the stem of its name."""
    kinds: dict[str, list[str]] = {}
    for file in files:
        conversations = json.loads(file.read_text(encoding="utf-8"))["conversations"]
        turns = [str(turn["text"]) for conversation in conversations for turn in conversation["turns"]]
        kinds[file.stem] = [text[:_LONGEST] for text in turns if text]
    return kinds


def _made(count: int) -> Iterator[tuple[str, list[str]]]:
    """`count` texts of each kind."""
    rng = random.Random(_SEED)
    sources = _sources(rng)
    words = sorted({word for word in _prose().lower().split() if word.isalpha() and len(word) > 2})
    yield "english", _pieces(rng, _prose(), count)
    yield "python", [rng.choice(_pieces(rng, rng.choice(sources), 3)) for _ in range(count)]
    for kind, make in _MAKERS.items():
        yield kind, [make(rng, words) for _ in range(count)]
    for script, sentences in _SCRIPTS.items():
        yield script, [" ".join(rng.choices(sentences, k=rng.randint(1, 4))) for _ in range(count)]


def _prose() -> str:
    """English prose of the standard library: the reference that `help()` shows."""
    topics: Mapping[str, str] = import_module("pydoc_data.topics").topics
    return "\n".join(topics[name] for name in sorted(topics))


def _sources(rng: random.Random) -> list[str]:
    """Modules of the standard library."""
    files = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
    return [file.read_text(encoding="utf-8", errors="replace") for file in rng.sample(files, min(60, len(files)))]


def _pieces(rng: random.Random, text: str, count: int) -> list[str]:
    """Pieces of 80 to 2,500 characters from anywhere in the text."""
    pieces: list[str] = []
    while len(pieces) < count:
        length = int(80 * 31.25 ** rng.random())
        start = rng.randrange(max(1, len(text) - length))
        if piece := text[start : start + length].strip():
            pieces.append(piece)
    return pieces


def _size(rng: random.Random) -> int:
    return int(20 * 100 ** rng.random())


def _lines(rng: random.Random, make: Callable[[], str]) -> str:
    return "\n".join(make() for _ in range(rng.randint(1, 12)))


def _record(rng: random.Random, words: Sequence[str]) -> dict[str, Any]:
    return {
        "id": rng.randrange(10**6),
        "user_id": str(uuid.UUID(int=rng.getrandbits(128))),
        "score": rng.random(),
        "tags": rng.sample(words, 3),
        "isActive": rng.random() < 0.5,
        "note": " ".join(rng.sample(words, 8)),
        "parent": None,
    }


def _json(rng: random.Random, words: Sequence[str]) -> str:
    records = [_record(rng, words) for _ in range(rng.randint(1, 5))]
    return json.dumps(records, indent=rng.choice((None, 2)))


def _log(rng: random.Random, words: Sequence[str]) -> str:
    return _lines(
        rng,
        lambda: (
            f"2026-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}T{rng.randrange(24):02}:07:00.{rng.randrange(1000)}Z "
            f"{rng.choice(('INFO', 'WARN', 'ERROR'))} [worker-{rng.randrange(9)}] app.{rng.choice(words)}: "
            f"{' '.join(rng.sample(words, 6))} in {rng.random() * 100:.3f}ms status={rng.choice((200, 404, 500))}"
        ),
    )


def _traceback(rng: random.Random, words: Sequence[str]) -> str:
    frames = _lines(
        rng,
        lambda: (
            f'  File "/srv/app/{rng.choice(words)}/{rng.choice(words)}.py", line {rng.randrange(900)}, '
            f"in {rng.choice(words)}_{rng.choice(words)}\n    self.{rng.choice(words)}({rng.choice(words)}, key=None)"
        ),
    )
    return f"Traceback (most recent call last):\n{frames}\nValueError: {' '.join(rng.sample(words, 5))}"


def _url(rng: random.Random, words: Sequence[str]) -> str:
    return _lines(
        rng,
        lambda: (
            f"https://www.{rng.choice(words)}{rng.choice(words)}.com/{'/'.join(rng.sample(words, 2))}"
            f"?id={rng.randrange(10**7)}&ref={rng.choice(words)}#{rng.choice(words)}"
        ),
    )


def _table(rng: random.Random, words: Sequence[str]) -> str:
    columns = rng.randint(2, 6)
    rows = [rng.sample(words, columns) for _ in range(rng.randint(2, 8))]
    return "\n".join(f"| {' | '.join(row)} |" for row in (rows[0], ["---"] * columns, *rows[1:]))


_MAKERS: Final[Mapping[str, Callable[[random.Random, Sequence[str]], str]]] = {
    "json": _json,
    "log": _log,
    "traceback": _traceback,
    "url": _url,
    "table": _table,
    "identifiers": lambda rng, words: "\n".join("_".join(rng.sample(words, 3)) for _ in range(_size(rng) // 20 + 1)),
    "base64": lambda rng, _: base64.b64encode(rng.randbytes(_size(rng))).decode(),
    "hex": lambda rng, _: rng.randbytes(_size(rng)).hex(),
    "uuid": lambda rng, _: _lines(rng, lambda: str(uuid.UUID(int=rng.getrandbits(128)))),
    "digits": lambda rng, _: "".join(rng.choices("0123456789", k=_size(rng))),
    "indented": lambda rng, words: _lines(rng, lambda: " " * rng.randrange(40) + rng.choice(words)),
    "emoji": lambda rng, words: f"{' '.join(rng.sample(words, 6))} {''.join(rng.choices(_EMOJI, k=rng.randint(1, 9)))}",
}


if __name__ == "__main__":
    sys.exit(main())
