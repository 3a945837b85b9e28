"""Sentences that say by themselves that they hold: "from now on", "we decided". Pure.

Without a model, nothing else is kept.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from kalito_mcp.domain.kinds import Kind
from kalito_mcp.kinds.judged import Judged, Sentence
from kalito_mcp.text.analysis import fold
from kalito_mcp.text.lazy_pattern import lazy
from kalito_mcp.text.phrases import Phrases
from kalito_mcp.text.times.other_languages import calendar_words
from kalito_mcp.text.times.vocabulary import WEEKDAYS

_RULES: Final[Mapping[str, str]] = {
    "en": "always, never, remember, from now on, going forward, no more, must not, please don't",
    "de": "immer, nie, niemals, ab jetzt, ab sofort, von nun an, merk dir, vergiss nicht",
    "fr": "toujours, jamais, désormais, à partir de maintenant, souviens-toi, retiens",
    "es": "siempre, nunca, jamás, a partir de ahora, de ahora en adelante, recuerda",
    "it": "sempre, mai, d'ora in poi, da adesso in poi, ricordati",
    "pt": "sempre, nunca, jamais, a partir de agora, daqui em diante, lembra-te, lembre-se",
    "nl": "altijd, nooit, vanaf nu, voortaan, onthoud",
    "sv": "alltid, aldrig, från och med nu, kom ihåg",
    "pl": "zawsze, nigdy, od teraz, pamiętaj",
    "tr": "her zaman, asla, bundan sonra, unutma",
    "ru": "всегда, никогда, отныне, с этого момента, запомни",
    "ar": "دائما, أبدا, من الآن فصاعدا, تذكر",
    "hi": "हमेशा, कभी नहीं, अब से, याद रखो, याद रखना",
    "zh": "总是, 永远, 从不, 从现在起, 以后都, 记住",
    "ja": "いつも, 必ず, 絶対に, 今後は, これからは, 覚えて",
    "ko": "항상, 절대, 앞으로는, 기억해",
}
_DECISIONS: Final[Mapping[str, str]] = {
    "en": "decided, we agreed, it's settled, let's go with, we'll go with, we went with",
    "de": "entschieden, beschlossen, wir nehmen, wir haben uns auf",
    "fr": "décidé, on part sur, c'est décidé",
    "es": "decidido, decidimos, nos quedamos con",
    "it": "deciso, abbiamo scelto",
    "pt": "decidido, decidimos, ficamos com",
    "nl": "besloten, afgesproken, we gaan voor",
    "sv": "bestämt, vi kör på",
    "pl": "zdecydowaliśmy, postanowione",
    "tr": "karar verdik, kararlaştırdık",
    "ru": "решили, решено, договорились",
    "ar": "قررنا, اتفقنا",
    "hi": "तय किया, फैसला किया",
    "zh": "决定, 定了",
    "ja": "決めた, 決めました, 決定",
    "ko": "정했, 결정했",
}
_ASKS: Final = ("?", "？", "؟")
_NAMING: Final = lazy(
    r"\b(?i:calls? me|my name(?:['’]s| is)|i (?:usually )?go by|address me as|nenn(?:en|t)? mich|ich hei(?:ß|ss)e"
    r"|mein name ist|m['’]appelle[rnt]*|appelle[rz]?-moi|ll[aá]ma(?:rme|me)|me llam(?:o|an)|me dicen|mi chiam(?:o|ano)"
    r"|chiamami|me cham(?:o|ar de)|noemt? me|ik heet|kalla mig|jag heter|mów mi|меня зовут|зови меня)"
    r"(?i: just| bitte| maar)? ([^\W\d_]+)"
)
"""The name has a capital, because "call me crazy" and "call me when it is done" name nobody."""

_RULE_WORDS: Final = Phrases(_RULES)
_LOOKED_FOR: Final = ((Kind.RULE, _RULE_WORDS), (Kind.DECISION, Phrases(_DECISIONS)))


def explicit_kind(text: str) -> Kind | None:
    """The kind that a text claims for itself: a rule, or a decision."""
    return next((kind for kind, phrases in _LOOKED_FOR if phrases.are_in(text)), None)


def begins_as_a_rule(text: str) -> bool:
    """Whether a text begins with words of a rule: "always run the tests", "please never push to main"."""
    return _RULE_WORDS.begin(text)


def names_its_speaker(text: str) -> bool:
    """Whether a text says what its speaker is called: "call me Ann". Not "call me Monday"."""
    called = (found[1] for found in _NAMING().finditer(text))
    return any(name[0].isupper() and name[-1].islower() and not _is_day(fold(name)) for name in called)


def _is_day(folded: str) -> bool:
    return folded in WEEKDAYS or folded in calendar_words(is_sure=True)


def judged_by_words(sentences: Sequence[Sentence]) -> list[Judged]:
    """Judges the sentences by explicit words. It takes no sentence for one about the person."""
    return [_judged(one) for one in sentences]


def _judged(sentence: Sentence) -> Judged:
    asks = any(mark in sentence.text for mark in _ASKS)
    kind = None if sentence.is_assistant or asks else explicit_kind(sentence.text)
    return Judged(Kind.FACT, 0.0, 0.0) if kind is None else Judged(kind, 1.0, 0.0)
