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

_ALWAYS: Final[Mapping[str, str]] = {
    "en": "always, never, must not, please don't, no more",
    "de": "immer, nie, niemals",
    "fr": "toujours, jamais",
    "es": "siempre, nunca, jamás",
    "it": "sempre, mai",
    "pt": "sempre, nunca, jamais",
    "nl": "altijd, nooit",
    "sv": "alltid, aldrig",
    "pl": "zawsze, nigdy",
    "tr": "her zaman, asla",
    "ru": "всегда, никогда",
    "ar": "دائما, أبدا",
    "hi": "हमेशा, कभी नहीं",
    "zh": "总是, 永远, 从不",
    "ja": "いつも, 必ず, 絶対に",
    "ko": "항상, 절대",
}
_FROM_NOW: Final[Mapping[str, str]] = {
    "en": "from now on, going forward",
    "de": "ab jetzt, ab sofort, von nun an",
    "fr": "désormais, à partir de maintenant",
    "es": "a partir de ahora, de ahora en adelante",
    "it": "d'ora in poi, da adesso in poi",
    "pt": "a partir de agora, daqui em diante",
    "nl": "vanaf nu, voortaan",
    "sv": "från och med nu",
    "pl": "od teraz",
    "tr": "bundan sonra",
    "ru": "отныне, с этого момента",
    "ar": "من الآن فصاعدا",
    "hi": "अब से",
    "zh": "从现在起, 以后都",
    "ja": "今後は, これからは",
    "ko": "앞으로는",
}
_REMEMBER: Final[Mapping[str, str]] = {
    "en": "remember",
    "de": "merk dir, vergiss nicht",
    "fr": "souviens-toi, retiens",
    "es": "recuerda",
    "it": "ricordati",
    "pt": "lembra-te, lembre-se",
    "nl": "onthoud",
    "sv": "kom ihåg",
    "pl": "pamiętaj",
    "tr": "unutma",
    "ru": "запомни",
    "ar": "تذكر",
    "hi": "याद रखो, याद रखना",
    "zh": "记住",
    "ja": "覚えて",
    "ko": "기억해",
}
_FOR_GOOD: Final[Mapping[str, str]] = {
    "en": "from here on, from today, starting today, as of today, in future, in the future, for good, every time, "
    "whenever, each time, no matter what, ever again, next time",
    "de": "ab heute, künftig, in zukunft, zukünftig, jedes mal, jedesmal, nächstes mal, beim nächsten mal, nie wieder, "
    "nie mehr, ein für alle mal, grundsätzlich, immer wenn",
    "fr": "dorénavant, à partir d'aujourd'hui, à l'avenir, la prochaine fois, plus jamais, chaque fois, une fois pour "
    "toutes, une bonne fois pour toutes, définitivement",
    "es": "a partir de hoy, desde ahora, desde hoy, en adelante, en el futuro, la próxima vez, cada vez que, "
    "nunca más, "
    "de una vez por todas",
    "it": "da oggi, da ora in avanti, in futuro, la prossima volta, ogni volta, mai più, una volta per tutte",
    "pt": "daqui para a frente, de agora em diante, a partir de hoje, no futuro, da próxima vez, sempre que, "
    "nunca mais, "
    "toda vez",
    "nl": "vanaf vandaag, in het vervolg, volgende keer, elke keer, nooit meer, telkens, voorgoed",
    "sv": "hädanefter, framöver, i fortsättningen, nästa gång, varje gång, aldrig mer, från och med idag",
    "pl": "od dziś, od dzisiaj, na przyszłość, następnym razem, za każdym razem, nigdy więcej, odtąd",
    "tr": "bundan böyle, artık, şu andan itibaren, bugünden itibaren, her seferinde, bir daha, bir dahaki sefere, "
    "mutlaka",
    "ru": "с сегодняшнего дня, впредь, в будущем, в следующий раз, каждый раз, больше никогда, раз и навсегда",
    "ar": "من اليوم, بعد اليوم, بعد الآن, من الآن, في المستقبل, في كل مرة, المرة القادمة, كل مرة",
    "hi": "आज से, आगे से, आइंदा, हर बार, अगली बार, जब भी",
    "zh": "从今以后, 以后, 今后, 从今天起, 每次, 下次, 再也不, 一律, 從現在起, 以後",
    "ja": "今後, これから, 今日から, 以後, 毎回, 次回から, 二度と, 次から, たびに",
    "ko": "앞으로, 이제부터, 지금부터, 오늘부터, 다음부터, 매번, 다시는, 때마다",
}
_BEAR_IN_MIND: Final[Mapping[str, str]] = {
    "en": "don't forget, do not forget, keep in mind, bear in mind, note that, take note, make a note",
    "de": "merke dir, denk daran, denk bitte daran, vergiss bitte nicht, im hinterkopf, behalte, notier dir",
    "fr": "rappelle-toi, n'oublie pas, n'oubliez pas, en tête, retenir, sache que, souvenez-vous",
    "es": "acuérdate, no olvides, no te olvides, ten en cuenta, tener en cuenta, apunta, anota",
    "it": "ricorda, ricordare, non dimenticare, non dimenticarti, tieni a mente, tieni presente, "
    "tieni conto, annota, segnati",
    "pt": "lembra, lembre, lembrar, não esqueças, não esqueça, não te esqueças, tem em conta, tenha em conta, anota",
    "nl": "onthouden, vergeet niet, in gedachten, rekening mee, noteer",
    "sv": "glöm inte, tänk på, notera, på minnet",
    "pl": "zapamiętaj, nie zapomnij, na uwadze, zapisz sobie, zanotuj",
    "tr": "hatırla, aklında, not al, unutmayın",
    "ru": "не забудь, помни, имей в виду, учти, запиши, не забывай",
    "ar": "لا تنس, لا تنسى, ضع في اعتبارك, احفظ, سجل",
    "hi": "मत भूलना, न भूलना, ध्यान रखना, ध्यान रखो, याद रखें, याद रखिए",
    "zh": "记得, 别忘, 不要忘, 牢记, 記住, 記得, 记一下",
    "ja": "忘れないで, 覚えといて, 憶えて, 頭に入れて, 記憶して",
    "ko": "잊지 마, 잊지 말, 명심, 염두에",
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
_ANNOUNCES: Final = (":", "：")
_NAMING: Final = lazy(
    r"\b(?i:calls? me|my name(?:['’]s| is)|i (?:usually )?go by|address me as|nenn(?:en|t)? mich|ich hei(?:ß|ss)e"
    r"|mein name ist|m['’]appelle[rnt]*|appelle[rz]?-moi|ll[aá]ma(?:rme|me)|me llam(?:o|an)|me dicen|mi chiam(?:o|ano)"
    r"|chiamami|me cham(?:o|ar de)|noemt? me|ik heet|kalla mig|jag heter|mów mi|меня зовут|зови меня)"
    r"(?i: just| bitte| maar)? ([^\W\d_]+)"
)
"""The name has a capital, because "call me crazy" and "call me when it is done" name nobody."""

_CALLED: Final = lazy(
    r"(?:と|って)(?:だけ)?(?:呼んで|よんで)|라고 (?:불러|부르)|[叫喊称稱]我|\bbana (?:sadece )?\S+ (?:de|diye)\b"
    r"|मुझे \S+(?: \S+)? (?:कह|बुला)|(?:نادِ?ني|خاطبني)|\bzeg maar \S+ tegen me|\bdammi del"
    r"|говори мне|обращайся ко мне|zwracaj się do mnie|mów do mnie"
)
_RULE_WORDS: Final = Phrases(_ALWAYS, _FROM_NOW, _REMEMBER)
_LASTING: Final = Phrases(_FROM_NOW, _FOR_GOOD)
_REMEMBERED: Final = Phrases(_REMEMBER, _BEAR_IN_MIND)
_LOOKED_FOR: Final = ((Kind.RULE, _RULE_WORDS), (Kind.DECISION, Phrases(_DECISIONS)))


def explicit_kind(text: str) -> Kind | None:
    """The kind that a text claims for itself: a rule, or a decision."""
    return next((kind for kind, phrases in _LOOKED_FOR if phrases.are_in(text)), None)


def begins_as_a_rule(text: str) -> bool:
    """Whether a text begins with words of a rule: "always run the tests", "please never push to main"."""
    return _RULE_WORDS.begin(text)


def says_for_good(text: str) -> bool:
    """Whether a text has words of what holds from now on: "going forward", "every time"."""
    return _LASTING.are_in(text)


def says_to_remember(text: str) -> bool:
    """Whether a text has words of remembering: "remember", "keep in mind"."""
    return _REMEMBERED.are_in(text)


def says_to_keep(text: str) -> bool:
    """Whether a text has words of remembering, of always and never, or of what holds from now on."""
    return _RULE_WORDS.are_in(text) or says_for_good(text) or says_to_remember(text)


def asks_to_be_called(text: str) -> bool:
    """Whether a text asks to be called something, in a language whose names have no capitals or come first."""
    return _CALLED().search(text) is not None


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
    announces = float(asks or sentence.text.endswith(_ANNOUNCES))
    asks_to_keep = float(not asks and _RULE_WORDS.begin(sentence.text, behind=0))
    if kind is None:
        return Judged(Kind.FACT, 0.0, 0.0, announces, asks_to_keep)
    return Judged(kind, 1.0, 0.0, announces, asks_to_keep)
