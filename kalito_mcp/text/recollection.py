"""Whether a text refers to what was said earlier: "what did I say", "the one we discussed". Pure."""

import re
from typing import Final

from kalito_mcp.text.lazy_pattern import lazy

_SAY: Final = (
    "say|tell|mention|talk|speak|discuss|ask|decide|agree|recommend|suggest|advise|plan|choose|pick|bring up|note|"
    "share|explain|describe|report|cover|go over|work on|settle on|end up"
)
_SAID: Final = (
    "said|told|mentioned|talked|spoke|discussed|asked|decided|agreed|recommended|suggested|advised|planned|chose|picked|"
    "brought up|noted|shared|explained|described|reported|covered|went over|worked on|settled on|ended up"
)
_BY_LANGUAGE: Final = {
    "English": (
        rf"\b(?:did|have|had) (?:i|we|you)\b(?:[ ,][\w'-]+){{0,3}}? (?:{_SAY}|{_SAID}|spoken|chosen)\b",
        rf"\b(?:i|we|you)(?:'ve|'d| have| had)?(?: \w+)?? (?:{_SAID})\b",
        r"\b(?:our|my|all|past|previous|earlier|last|these|those) (?:\w+ )?(?:conversation|discussion|chat|session)s?"
        r"\b",
        r"\b(?:do|can|you) (?:\w+ )?(?:remember|recall)\b|\bremind me\b|\blast time\b",
    ),
    "German": (
        r"\b(?:habe ich|haben wir|hast du|haben sie|hatte ich|hatten wir)\b.* (?:gesagt|erzählt|erwähnt|besprochen"
        r"|gesprochen|entschieden|vorgeschlagen|empfohlen|genannt|geplant)\b",
        r"\bletztes mal\b|\berinner",
    ),
    "French": (
        r"\b(?:ai-je|avons-nous|as-tu|avez-vous|j'ai|on a|tu m'as|tu as)\b.* (?:dit|mentionné|parlé|décidé|discuté"
        r"|raconté|proposé|conseillé|recommandé|prévu)\b",
        r"\bla dernière fois\b|\brappelle",
    ),
    "Spanish": (
        r"\b(?:dije|conté|mencioné|dijiste|hablamos|decidimos|acordamos|recomendaste|sugeriste)\b",
        r"\bla última vez\b|\brecuérdame\b|\bte acuerdas\b|\brecuerdas\b",
    ),
    "Italian": (
        r"\b(?:ho|abbiamo|hai) (?:detto|parlato|deciso|discusso|menzionato|consigliato|suggerito)\b",
        r"\bl'ultima volta\b|\bricord(?:i|ami)\b",
    ),
    "Portuguese": (
        r"\b(?:eu disse|você disse|disseste|mencionei|falamos|decidimos|combinamos)\b",
        r"\bda última vez\b|\blembras?\b",
    ),
    "Dutch": (
        r"\b(?:heb ik|hebben we|heb je)\b.* (?:gezegd|verteld|genoemd|besproken|besloten|aangeraden)\b",
        r"\bvorige keer\b|\bherinner",
    ),
    "Polish": (
        r"\b(?:mówił[ae]?m|wspominał[ae]?m|rozmawialiśmy|ustaliliśmy)\b",
        r"\bostatnim razem\b|\bprzypomnij\b|\bpamiętasz\b",
    ),
    "Russian": (
        r"\b(?:говорила?|рассказывала?|упоминала?|обсуждали|решили|договорились|советовала?)\b",
        r"\bв прошлый раз\b|\bнапомни|\bпомнишь\b",
    ),
    "Chinese": (r"[我你][们們]?(?:说过|說過|提到|提过|提過|讨论过|討論過|建议过)|上次|[还還]记得|還記得|提醒我",),
    "Japanese": (r"言った|言いました|話した|話しました|決めた|決めました|前回|覚えて",),
}
_REFERS: Final = lazy("|".join(one for patterns in _BY_LANGUAGE.values() for one in patterns), re.IGNORECASE)


def refers_to_the_past(text: str) -> bool:
    """Whether it names what was said before, in one of the languages of the table."""
    return _REFERS().search(text) is not None
