"""Scores how informative a sentence of a conversation is, in points. Pure.

A sentence gains points for terms its range shares, for names, numbers and dates, and for words of decision,
preference, commitment and fact. It loses points if it asks, supposes, or begins with a word like "that". Word lists
are English first, with the commonest words of a few other languages. Numbers, names and shared terms work in every
script.

Points are whole numbers, because sums of floats differ in their last bits between platforms and Python versions, and
summaries must not. Source: centrality by shared terms after Luhn 1958 and Radev et al. 2004; the cue words are ours.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kalito_mcp.text.analysis import fold
from kalito_mcp.text.lazy_pattern import lazy
from kalito_mcp.text.sentences import UNSPACED
from kalito_mcp.text.times.annotation import DATED
from kalito_mcp.text.times.other_languages import calendar_words
from kalito_mcp.text.times.vocabulary import MONTH_NAMES, SHORT_MONTHS, WEEKDAY_NAMES


@dataclass(frozen=True, slots=True)
class SaliencePolicy:
    """Points for each feature. A `_cap` limits how often it counts; `cue_cap` limits the points of all cues."""

    term: int = 6
    shared_term: int = 1
    shared_cap: int = 3
    number: int = 20
    number_cap: int = 3
    date: int = 20
    date_cap: int = 2
    name: int = 22
    name_cap: int = 3
    cue_cap: int = 48
    first_person: int = 12
    code: int = 12
    importance: int = 10
    question: int = -24
    second_person: int = -14
    pointing: int = -18
    conditional: int = -8
    fragment: int = -14


DEFAULT_SALIENCE: Final = SaliencePolicy()


@dataclass(frozen=True, slots=True)
class SentenceFeatures:
    """`folded` has the words in order, `names` the capitalised ones after the first and identifiers like `parse_date`,
    `numbers` those with a digit."""

    text: str
    folded: tuple[str, ...]
    terms: frozenset[str]
    names: frozenset[str]
    numbers: tuple[str, ...]
    is_question: bool


_PUNCTUATION: Final = (
    r"\s\x00-\x1f!-/:-@\[-^`{-~\x7f-\xa9\xab-\xb1\xb4\xb6-\xb8\xbb\xbf"
    r"\u2000-\u206f\u2190-\u2bff\u3000-\u3004\u3008-\u3020\u3030\ufe00-\ufe0f\uff01-\uff0f\uff1a-\uff20"
    r"\uff3b-\uff40\uff5b-\uff65\U0001f000-\U0001faff"
)
_WORD: Final = lazy(rf"[{UNSPACED}]++|[^{_PUNCTUATION}{UNSPACED}]++(?:[-'’._:/@][^{_PUNCTUATION}{UNSPACED}]++)*+")
_UNSPACED: Final = lazy(rf"[{UNSPACED}]")
_BARE_LABEL: Final = lazy(r"\[(?:[^\[\]\s]{1,20} )?code\]\.?")
_ANY_DIGIT: Final = lazy(r"\d")
_DATED: Final = lazy(DATED)

_QUESTION_ENDS: Final = ("?", "？", "؟", '?"', "?”", "?)", "吗。", "か。", "か", "吗", "呢")

STOPWORDS: Final = frozenset(
    "a about above after again all almost along already also although always am among an and another any anyone "
    "anything are around as at away back be became because become been before behind being below between both but by "
    "came can can't cannot come could couldn't did didn't do does doesn't doing don't done down during each either "
    "else enough even ever every everyone everything few for from further gave get gets getting give given go goes "
    "going gone gonna got gotta had hadn't has hasn't have haven't having he he'd he'll he's her here hers herself him "
    "himself his how how's however i i'd i'll i'm i've if in instead into is isn't it it'd it'll it's its itself just "
    "keep kept kind kinda knew know known last least less let let's like likely little long look looking looks lot "
    "lots made make makes making many may maybe me might mine more most much must my myself near need needs never new "
    "next no nobody none nor not nothing now of off often okay on once one one's ones only onto or other others our "
    "ours ourselves out over own perhaps put quite rather really said same saw say says see seem seems seen she she'd "
    "she'll she's should shouldn't since so some someone something sometimes soon sort still such take taken takes "
    "taking tell than that that'd that'll that's the their theirs them themselves then there there's these they they'd "
    "they'll they're they've thing things think this those though through till to together told too took toward tried "
    "try trying under until up upon us use used uses using very via want wanted wants was wasn't way we we'd we'll "
    "we're we've well went were weren't what what's whatever when when's where where's whether which while who who's "
    "whole whom whose why will with within without won't would wouldn't yet you you'd you'll you're you've your yours "
    "yourself el la los las de del y en que un una es por con para se lo le der die das und ist ich ein eine zu den "
    "dem nicht mit le les des et une est je du au il ne pas pour dans".split()
)
# Praise, politeness and chatter carry no content.
FILLER: Final = frozenset(
    "absolutely agree agreed amazing anytime appreciate awesome bet brilliant bye care catch chat cheers cool "
    "congrats congratulations course day definitely enjoy exactly excellent excited exciting fantastic feel feeling "
    "fine forward free fun glad good goodbye gosh great guess guy guys haha happy hear heard hello help helpful "
    "helps hey hi hope hoping idea incredible inspiring interesting keep know later lol lovely luck luckily mean "
    "means nice night oh ok perfect please pleased pleasure pretty problem proud question questions ready right safe "
    "sounds sound special super support supportive sure surely sweet talk thank thanks thoughtful totally true truly "
    "understand wait welcome wish wonderful word words work worries worry worth wow yay yeah yep yes yup "
    "hola gracias nada hallo danke bitte tschüss bonjour merci salut ciao grazie prego olá obrigado obrigada "
    "你好 您好 谢谢 謝謝 再见 好的 こんにちは ありがとう はい ありがとうございます".split()
)
_DATE_WORDS: Final = (MONTH_NAMES - {"may"}).union(
    SHORT_MONTHS,
    WEEKDAY_NAMES,
    "mon tue wed thu fri today tomorrow tonight yesterday weekend fortnight noon midnight annually monthly weekly "
    "daily".split(),
)
_TIME_UNITS: Final = frozenset("minute hour day week month year summer winter spring autumn fall semester".split())
_TIME_LINKS: Final = frozenset("last next this past every ago in for since".split())


def _build_cues() -> dict[str, int]:
    strengths: tuple[tuple[int, str], ...] = (
        (44, "allergic allergy allergies alergia allergisch allergique emergency password"),
        (
            30,
            "decided decide decision decisions agreed chose chosen deadline due "
            "appointment diagnosed diagnosis prefer prefers preferred preference settled confirmed approved rejected "
            "birthday anniversary pregnant surgery entschieden decidimos décidé",
        ),
        (
            20,
            "lives live living moved moving born works worked job married engaged divorced graduated hired promoted "
            "bought sold adopted booked scheduled ordered signed paid owns joined started began launched released "
            "deployed fixed broke fails failed caused cause because reason root switched migrated replaced renamed "
            "merged reverted upgraded renewed cancelled canceled postponed won lost accepted applied enrolled quit "
            "always never must avoid only vegan vegetarian favorite favourite hates hate loves dose dosage mg "
            "takes prescribed symptoms doctor nurse dr flight hotel passport visa budget price costs cost rent salary",
        ),
        (
            12,
            "plan plans planned planning will we'll i'll let's promise promised remind remember important require "
            "requires required needs name named called instead goal dream learned realized discovered found visited "
            "attended volunteered performed participated published wrote painted built created opened received gave "
            "mother father mom dad mum brother sister son daughter wife husband partner uncle aunt cousin grandma "
            "grandpa grandmother grandfather niece nephew girlfriend boyfriend dog cat puppy kitten kids children "
            "boss manager colleague client customer team school university college company office",
        ),
    )
    return {word: points for points, words in reversed(strengths) for word in words.split()}


_CUES: Final[Mapping[str, int]] = _build_cues()
# Searched for as substrings, because their scripts have no spaces.
_UNSPACED_CUES: Final = (
    "决定",
    "決定",
    "決め",
    "过敏",
    "過敏",
    "アレルギー",
    "喜欢",
    "好き",
    "预约",
    "予約",
    "生日",
    "誕生日",
    "住在",
    "住ん",
)
_UNSPACED_CUE: Final = 20
_FIRST_PERSON: Final = frozenset("i i'm i've i'd i'll my mine our ours we we're we've we'll we'd".split())
_SECOND_PERSON: Final = frozenset("you you're you've you'll you'd your yours".split())
_POINTING: Final = frozenset("it it's this that that's these those they they're he he's she she's them".split())
_CONDITIONAL: Final = frozenset("if unless could would might may maybe perhaps consider".split())
_FUNCTION_WORDS: Final = STOPWORDS | _CONDITIONAL
_PAIR: Final = 2
_MIN_SENTENCE_WORDS: Final = 4
_MIN_SHORT_NAME: Final = 3
_NEGATIONS: Final = frozenset("not no never without nor neither none cannot nicht kein keine pas non ohne sin".split())


def extract_features(text: str) -> SentenceFeatures:
    """Fold the words of a sentence, and find its terms, names and numbers. Dates by `with_dates` do not count."""
    words = _WORD().findall(_DATED().sub("", text) if "(" in text else text)
    folded = tuple(map(str.casefold, words))
    if "’" in text:
        folded = tuple(word.replace("’", "'") for word in folded)
    is_ascii, is_shouted = text.isascii(), text.isupper()
    may_be_identifier = "_" in text or "@" in text or "://" in text
    names: list[str] = []
    terms: list[str] = []
    for position, (word, low) in enumerate(zip(words, folded, strict=True)):
        if low in _FUNCTION_WORDS:
            continue
        if (position and word[0].isupper() and not is_shouted) or (
            may_be_identifier and ("_" in word or "@" in word or "://" in word)
        ):
            names.append(low)
        if low in FILLER:
            continue
        if not is_ascii and len(word) >= _PAIR and not word.isascii() and _UNSPACED().match(word):
            terms.extend(word[at : at + _PAIR] for at in range(len(word) - 1))
        else:
            terms.append(stem(low))
    has_digit = _ANY_DIGIT().search
    numbers = tuple([word for word in folded if not word.isalpha() and has_digit(word)])
    is_question = text.endswith(_QUESTION_ENDS)
    return SentenceFeatures(text, folded, frozenset(terms), frozenset(names), numbers, is_question)


def is_informative(sentence: SentenceFeatures, addressed: Collection[str] = ()) -> bool:
    """Whether the sentence has more than politeness: two terms, or one with a name or a number.

    The `addressed` names do not count.
    """
    if _BARE_LABEL().fullmatch(sentence.text):
        return False
    terms = sum(term not in addressed for term in sentence.terms)
    if terms == 1:
        return bool(sentence.numbers) or any(name not in addressed for name in sentence.names)
    return terms > 1


def addressed_names(speakers: Collection[str], groups: Sequence[Sequence[SentenceFeatures]]) -> frozenset[str]:
    """Return the words of the speakers' names, and short forms in use (`mel` for `melanie`)."""
    full = [word for speaker in speakers for word in speaker.casefold().split()]
    named = {name: None for group in groups for sentence in group for name in sentence.names}
    short = (name for name in named if len(name) >= _MIN_SHORT_NAME and any(word.startswith(name) for word in full))
    return frozenset((*full, *short))


def group_frequency(groups: Sequence[Sequence[SentenceFeatures]]) -> Counter[str]:
    """Count the groups (messages or parts) that contain each term."""
    frequency: Counter[str] = Counter()
    for group in groups:
        frequency.update({term: None for sentence in group for term in sentence.terms}.keys())
    return frequency


def score(
    sentence: SentenceFeatures,
    *,
    frequency: Mapping[str, int],
    known_names: Collection[str],
    speakers: Collection[str],
    importance: float = 0.5,
    policy: SaliencePolicy = DEFAULT_SALIENCE,
) -> int:
    """Return the sentence's points; 0 or less means worthless. A sentence that ends in a colon has 0.

    `known_names` are those of the whole range, so that a name counts at the beginning of a sentence too. The folded
    names of the `speakers` do not count.
    """
    if sentence.text.endswith((":", "：")):
        return 0
    total = int(policy.importance * importance)
    for term in sentence.terms:
        worth = policy.term + policy.shared_term * min(frequency.get(term, 1) - 1, policy.shared_cap)
        # In scripts without spaces, terms are pairs of characters: twice as many for the same words.
        is_pair = len(term) == _PAIR and not term.isascii() and _UNSPACED().match(term)
        total += worth // 2 if is_pair else worth
    names = {word for word in sentence.folded if word in known_names and word not in speakers}
    total += policy.number * min(len(sentence.numbers), policy.number_cap) + policy.name * min(
        len(names), policy.name_cap
    )
    total += policy.date * min(_count_dates(sentence), policy.date_cap) + min(_cue_points(sentence), policy.cue_cap)
    if len(sentence.folded) < _MIN_SENTENCE_WORDS and not sentence.numbers:
        total += policy.fragment
    if sentence.folded and sentence.folded[0] in _POINTING and not names:
        total += policy.pointing
    return total + _tone_points(sentence, policy)


def _count_dates(sentence: SentenceFeatures) -> int:
    dates = calendar_words(is_sure=False)
    count = len(
        [word for word in sentence.folded if word in _DATE_WORDS or (word if word.isascii() else fold(word)) in dates]
    )
    if not _TIME_UNITS.isdisjoint(sentence.folded) and not _TIME_LINKS.isdisjoint(sentence.folded):
        count += 1
    return count


def _cue_points(sentence: SentenceFeatures) -> int:
    total = sum([_CUES[word] for word in sentence.folded if word in _CUES])
    if not sentence.text.isascii() and _UNSPACED().search(sentence.text):
        total += sum(_UNSPACED_CUE for cue in _UNSPACED_CUES if cue in sentence.text)
    return total


def _tone_points(sentence: SentenceFeatures, policy: SaliencePolicy) -> int:
    """Score whom the sentence is about, and whether it states, asks or supposes."""
    total = 0
    if not _FIRST_PERSON.isdisjoint(sentence.folded):
        total += policy.first_person
    elif not _SECOND_PERSON.isdisjoint(sentence.folded):
        total += policy.second_person
    if "code: " in sentence.text and "[" in sentence.text:
        total += policy.code
    if sentence.is_question:
        total += policy.question
    if not _CONDITIONAL.isdisjoint(sentence.folded):
        total += policy.conditional
    return total


def stem(folded: str) -> str:
    """Strip a plural or possessive ending. Short words keep their plural."""
    if folded.endswith("'s"):
        folded = folded[:-2]
    if len(folded) > 4 and folded.endswith("s") and not folded.endswith("ss"):  # noqa: PLR2004
        return folded[:-1]
    return folded


def distinguishing_words(sentence: SentenceFeatures) -> frozenset[str]:
    """Return the numbers, added dates and negations: sentences that differ in these mean different things."""
    negations = [word for word in sentence.folded if word in _NEGATIONS or word.endswith("n't")]
    dates = _DATED().findall(sentence.text) if "(" in sentence.text else ()
    return frozenset(negations).union(sentence.numbers, dates)
