"""Statements in German, French, Spanish and Chinese, by patterns of the commonest attributes. Pure."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Final, NamedTuple

from kalito_mcp.domain.facts import ANY, Polarity, Statement
from kalito_mcp.facts.attributes import HOLDS
from kalito_mcp.text.analysis import fold


class _Rule(NamedTuple):
    attribute: str
    pattern: str
    polarity: Polarity = Polarity.IS
    is_change: bool = False


_V: Final = r"(?P<v>(?-i:[A-ZÀÖØ-Þ0-9])[\w.&'-]*(?: (?-i:[A-ZÀÖØ-Þ])[\w.&'-]*){0,3})"
_WHO: Final = r"(?P<who>(?!(?:ahora|actualmente|ya|maintenant|jetzt|nun|ich|je|yo)\b)(?-i:[A-ZÀÖØ-Þ])[\w-]+)"
_HAN: Final = r"(?P<v>[\u4e00-\u9fffA-Za-z0-9 ]{1,12}?)(?=[了，。,.!！]|的|工作|上班|$)"
_HAN_V: Final = r"(?P<v>[\u4e00-\u9fffA-Za-z0-9 ]{1,12}?)"
_RULES: Final[tuple[_Rule, ...]] = (
    _Rule("home", rf"\b(?:ich|{_WHO}) (?:wohne?t?|lebe?t?) (?:nicht mehr|nicht länger) in {_V}", Polarity.NOT, True),
    _Rule(
        "home",
        rf"\b(?:ich|{_WHO}) (?:wohne?t?|lebe?t?) (?:(?:jetzt|nun|seit \w+|mittlerweile|inzwischen|aktuell) )?in {_V}",
    ),
    _Rule("home", rf"\b(?:ich bin|{_WHO} ist) (?:\w+ ){{0,3}}?nach {_V} (?:um)?gezogen", is_change=True),
    _Rule("home", rf"\b(?:ich|{_WHO}) (?:ziehe|zog) nach {_V}", is_change=True),
    _Rule("employer", rf"\b(?:ich|{_WHO}) arbeite?t? (?:nicht mehr|nicht länger) (?:bei|für) {_V}", Polarity.NOT, True),
    _Rule(
        "employer", rf"\b(?:ich|{_WHO}) arbeite?t? (?:(?:jetzt|nun|mittlerweile|inzwischen|aktuell) )?(?:bei|für) {_V}"
    ),
    _Rule(
        "boss",
        rf"\b(?:mein chef|meine chefin|mein vorgesetzter|meine vorgesetzte) (?:ist|heißt) (?:(?:jetzt|nun) )?{_V}",
    ),
    _Rule("favorite color", r"\bmeine lieblingsfarbe ist (?:(?:jetzt|nun) )?(?P<v>\w+)"),
    _Rule("home", rf"\b(?:je n'|{_WHO} n')habite plus (?:à|en|au|aux) {_V}", Polarity.NOT, True),
    _Rule(
        "home", rf"\b(?:j'|{_WHO} )(?:habite|vis|vit) (?:(?:maintenant|désormais|actuellement) )?(?:à|en|au|aux) {_V}"
    ),
    _Rule("home", rf"\bje vis (?:(?:maintenant|désormais|actuellement) )?(?:à|en|au|aux) {_V}"),
    _Rule("home", rf"\b(?:j'ai|{_WHO} a) déménagé (?:à|en|au|aux) {_V}", is_change=True),
    _Rule("employer", rf"\b(?:je ne|{_WHO} ne) travaille plus (?:chez|pour|à) {_V}", Polarity.NOT, True),
    _Rule("employer", rf"\b(?:je|{_WHO}) travaille (?:(?:maintenant|désormais|actuellement) )?(?:chez|pour) {_V}"),
    _Rule(
        "boss",
        rf"\b(?:mon chef|ma cheffe|mon patron|ma patronne|mon manager) (?:est|s'appelle) (?:(?:maintenant|"
        rf"désormais) )?{_V}",
    ),
    _Rule("favorite color", r"\bma couleur préférée est (?:(?:maintenant|désormais) )?(?:le )?(?P<v>\w+)"),
    _Rule("home", rf"\bya no vivo en {_V}", Polarity.NOT, True),
    _Rule("home", rf"(?<!no )\b(?:{_WHO} )?(?:ahora |actualmente )?viv(?:o|e) (?:ahora |actualmente )?en {_V}"),
    _Rule("home", rf"\b(?:{_WHO} se mudó|me mudé|me he mudado|se ha mudado) (?:\w+ )?a {_V}", is_change=True),
    _Rule("employer", rf"\bya no trabaj[oa] (?:en|para) {_V}", Polarity.NOT, True),
    _Rule(
        "employer",
        rf"(?<!no )\b(?:{_WHO} )?(?:ahora |actualmente )?trabaj[oa] (?:ahora |actualmente )?(?:en|para) {_V}",
    ),
    _Rule("boss", rf"\bmi (?:nuevo |nueva )?(?:jefe|jefa) (?:ahora )?(?:es|se llama) (?:ahora )?{_V}"),
    _Rule("favorite color", r"\bmi color favorito (?:ahora )?es (?:ahora )?(?:el )?(?P<v>\w+)"),
    _Rule("home", rf"我(?:已经)?不(?:再)?住在{_HAN}", Polarity.NOT, True),
    _Rule("home", rf"我(?:现在|目前)?(?:住在|定居在|居住在){_HAN}"),
    _Rule("home", rf"我(?:已经|刚刚?|最近)?(?:搬到|搬去|搬家到)了?{_HAN}", is_change=True),
    _Rule("employer", rf"我(?:已经)?不(?:再)?在{_HAN}(?:工作|上班)", Polarity.NOT, True),
    _Rule("employer", rf"我(?:现在|目前)?在{_HAN}(?:工作|上班)"),
    _Rule("employer", rf"我(?:已经|刚刚?|最近)?(?:加入|跳槽到|入职)了?{_HAN}", is_change=True),
    _Rule("boss", rf"我(?:现在|目前)?的(?:新)?(?:老板|上司|经理)(?:现在)?是{_HAN}"),
    _Rule("favorite color", rf"我(?:现在)?最喜欢的颜色(?:现在)?是{_HAN}"),
)
# What has ended, whatever it was a value of; and what we use.
_RULES_OF_ENDS: Final[tuple[_Rule, ...]] = (
    _Rule(ANY, rf"\b(?:ich habe|{_WHO} hat) (?:\w+ ){{0,2}}?bei {_V} (?:gekündigt|aufgehört)", Polarity.NOT, True),
    _Rule(
        ANY,
        rf"\b(?:wir|ich) (?:sind|bin|haben|habe) (?:\w+ ){{0,2}}?von {_V} (?:auf|zu) .*(?:um|ge)",
        Polarity.NOT,
        True,
    ),
    _Rule(
        "boss",
        rf"\b(?:mein neuer chef|meine neue chefin|mein neuer vorgesetzter|meine neue vorgesetzte) (?:ist|heißt) {_V}",
        is_change=True,
    ),
    _Rule(ANY, rf"\bj'ai (?:\w+ )?quitté {_V}", Polarity.NOT, True),
    _Rule(ANY, rf"\b(?:on est|nous sommes|je suis) (?:\w+ )?passée?s? de {_V} à ", Polarity.NOT, True),
    _Rule(ANY, r"\bma couleur préférée n'est plus (?:le )?(?P<v>\w+)", Polarity.NOT, True),
    _Rule(ANY, rf"\b(?:he|hemos) dejado (?:de usar )?{_V}", Polarity.NOT, True),
    _Rule(ANY, rf"\b(?:he|hemos) (?:cambiado|migrado|pasado) de {_V} a ", Polarity.NOT, True),
    _Rule(ANY, rf"我(?:已经|刚刚?|最近)?从{_HAN_V}(?:辞职|离职|跳槽)", Polarity.NOT, True),
    _Rule(ANY, rf"我们?(?:已经|刚刚?|最近)?从{_HAN_V}(?:换成|换到|迁移到|改用|转到)", Polarity.NOT, True),
    _Rule("boss", rf"我的(?:老板|上司|经理)(?:已经)?(?:换成|变成)了?{_HAN}", is_change=True),
    _Rule(f"{HOLDS} tool", rf"\b(?:wir|ich) (?:nutzen?|verwenden?|benutzen?) {_V}"),
    _Rule(f"{HOLDS} tool", rf"\b(?:on|nous|j'|je )\s?utilis(?:e|ons) {_V}"),
    _Rule(f"{HOLDS} tool", rf"\b(?:usamos|uso|utilizamos) {_V}"),
    _Rule(f"{HOLDS} tool", rf"我们?(?:现在|目前)?(?:用|使用)(?:的是)?{_HAN}"),
)
_CUES: Final = re.compile(
    r"\b(?:jetzt|nun|mittlerweile|inzwischen|nicht mehr|stattdessen|korrektur|umgezogen|maintenant|désormais|"
    r"ne .{1,20} plus|"
    r"plutôt|correction|ahora|ya no|en vez|corrección|actualmente|me mudé|nuev[oa])\b"
    r"|现在|目前|不再|搬|更正|其实|改成|新",
    re.IGNORECASE,
)
_TELLING: Final = frozenset(
    """ich wohne wohnt lebe lebt arbeite arbeitet ziehe zog mein meine habite vis vit je j travaille mon ma vivo vive
    trabajo trabaja mi mudé mudó mudado déménagé gezogen wir nous utilise utilisons
    passé passés passée passées hemos dejado usamos uso utilizamos""".split()
)
_WORD: Final = re.compile(r"[^\W\d_]+")
_UNSURE: Final = re.compile(
    r"\b(?:wenn|falls|würde|könnte|vielleicht|möchte|will|si|voudrais|peut-être|aimerais|pourrais|ojalá|quizás?|quiero|"
    r"gustaría|podría)\b|如果|也许|可能|想要?|希望|会搬",
    re.IGNORECASE,
)


@cache
def _compiled() -> tuple[tuple[re.Pattern[str], _Rule], ...]:
    return tuple((re.compile(rule.pattern, re.IGNORECASE), rule) for rule in (*_RULES, *_RULES_OF_ENDS))


def foreign_statements(start: int, sentence: str, me: str) -> Iterator[Statement]:
    """The statements of a sentence in one of these languages; none if it is in English. One an attribute and place."""
    is_likely = "我" in sentence or not _TELLING.isdisjoint(_WORD.findall(sentence.lower()))
    if not is_likely or _UNSURE.search(sentence):
        return
    has_cue = _CUES.search(sentence) is not None
    for clause in re.finditer(r"[^,;，；]+", sentence):
        seen: set[str] = set()
        for pattern, rule in _compiled():
            found = pattern.search(clause[0])
            if found and rule.attribute not in seen and found["v"]:
                seen.add(rule.attribute)
                who = found.groupdict().get("who")
                begin = start + clause.start() + len(clause[0]) - len(clause[0].lstrip())
                yield Statement(
                    fold(who) if who else me,
                    rule.attribute,
                    " ".join(fold(found["v"]).split()).strip(" ."),
                    found["v"],
                    begin,
                    start + clause.start() + len(clause[0].rstrip(" .。!！")),
                    rule.polarity,
                    rule.is_change or has_cue,
                )
