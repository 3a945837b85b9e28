"""Explicit requests to remember: "remember that I am allergic to nuts", "merk dir, dass ...". Pure.

A request has a frame, which is not part of what is to be remembered, and may say where that holds. `FRAMES` has the
frames of each language, each with a sentence that has it and one that does not; a test reads all of them.
"""

import re
from typing import Final, NamedTuple

from kalito_mcp.domain.records import Reach
from kalito_mcp.text.lazy_pattern import lazy
from kalito_mcp.text.phrases import Phrases


class Frame(NamedTuple):
    """How a request begins, or ends (`is_behind`), in a language. What the pattern matches is cut off."""

    pattern: str
    matches: str
    differs: str
    is_behind: bool = False


_THAT: Final = r"(?:\s*[:,–—-]+\s*|\s+)"

FRAMES: Final = (
    Frame(  # English
        r"(?:remember|keep in mind|bear in mind|do(?: not|n['’]t) (?:you )?forget|(?:make|take) (?:a )?note|note"
        r"|(?:i )?(?:want|need|would like|['’]d like) you to (?:remember|know)|memori[sz]e|write(?: it)? down"
        r"|(?:save|add|commit|store)(?: this| that| it)?(?: in| to)?(?: your)? memory)"
        r"(?: this| the following| it)?(?: for (?:me|later|next time|future (?:reference|sessions)|the future))?"
        r"(?:\s+that\b|\s*[:,–—-]+(?=\s)|(?=\s+(?:i|i['’]\w+|my|we|we['’]\w+|our)\s))",
        "please remember that I am allergic to nuts",
        "remember when we tried that",
    ),
    Frame(
        r"(?:note to self|for the record|for (?:next time|future reference)|reminder|fyi)\s*[:,–—-]+(?=\s)",
        "for the record: the lease ends in May",
        "note the difference between the two",
    ),
    Frame(  # German
        r"(?:merke? (?:dir|es dir)|(?:denk|denke) (?:bitte )?daran|vergiss(?: bitte)? nicht|behalte?(?: bitte)? im "
        r"(?:kopf|hinterkopf)|notier(?:e)?(?: dir)?|speicher(?:e)?(?: dir)?|beachte|präge? dir ein)"
        r"(?: bitte| mal| das| folgendes)*(?:\s*[,:–—-]*\s+dass\b|\s*[:,–—-]+(?=\s))",
        "merk dir bitte, dass ich Nüsse nicht vertrage",
        "merkst du dir das?",
    ),
    Frame(  # French
        r"(?:souviens-toi|souvenez-vous|rappelle-toi|retiens|retenez|n['’]oublie(?:z)? pas|note(?:z)?"
        r"|gardez?(?: bien)? (?:en tête|à l['’]esprit)"
        r"|mémorise(?:z)?|enregistre|sache)(?: bien| ceci| ça)*(?:\s+qu(?:e\b|['’])|\s*[:,–—-]+(?=\s))",
        "souviens-toi que je suis allergique aux noix",
        "note les différences",
    ),
    Frame(  # Spanish
        r"(?:recuerda|recuerde|acuérdate(?: de)?|ten(?:ga)? en cuenta|no (?:te )?olvides(?: de)?|apunta|anota|memoriza"
        r"|guarda|toma nota(?: de)?)(?: esto| bien)*(?:\s+que\b|\s*[:,–—-]+(?=\s))",
        "recuerda que soy alérgica a las nueces",
        "¿recuerdas qué puerto era?",
    ),
    Frame(  # Italian
        r"(?:ricorda(?:ti)?|tieni (?:a mente|presente|conto)|non dimenticar(?:e|ti)|annota(?:ti)?|segna(?:ti)?"
        r"|memorizza|prendi nota)(?: questo| bene)*(?:\s+(?:del fatto )?che\b|\s*[:,–—-]+(?=\s))",
        "ricordati che sono allergico alle noci",
        "ricordi quale porta era?",
    ),
    Frame(  # Portuguese
        r"(?:lembr[ea](?:-te|-se)?(?: de)?|não (?:te )?esque(?:ças?|ce)(?: de)?|ten(?:ha|s)? em (?:mente|conta)"
        r"|tem em (?:mente|conta)|anota|memoriza|guarda|toma nota)(?: isto| isso| bem| aí)*"
        r"(?:\s+que\b|\s*[:,–—-]+(?=\s))",
        "lembra-te que sou alérgico a nozes",
        "lembras-te da porta?",
    ),
    Frame(  # Dutch
        r"(?:onthoud|vergeet niet|houd? er rekening mee|houd? in gedachten|noteer|let (?:er )?op|schrijf op)"
        r"(?: even| goed| alsjeblieft| dit)*(?:\s*,?\s+dat\b|\s*[:,–—-]+(?=\s))",
        "onthoud dat ik allergisch ben voor noten",
        "onthoud jij alles?",
    ),
    Frame(  # Swedish
        r"(?:kom ihåg|glöm inte|tänk på|notera|lägg på minnet|anteckna|spara)(?: också| gärna)*"
        r"(?:\s+att\b|\s*[:,–—-]+(?=\s))",
        "kom ihåg att jag är allergisk mot nötter",
        "kommer du ihåg porten?",
    ),
    Frame(  # Polish
        r"(?:pamiętaj|zapamiętaj|nie zapomnij|zapisz|zanotuj|miej na uwadze|weź pod uwagę)(?: sobie| proszę| to)*"
        r"(?:\s*,?\s+że\b|\s*[:,–—-]+(?=\s))",
        "zapamiętaj, że mam alergię na orzechy",
        "pamiętasz, jaki to był port?",
    ),
    Frame(  # Turkish
        r"(?:unutma|hatırla|not al|aklında (?:olsun|bulunsun|tut)|şunu unutma|bunu unutma"
        r"|şunu hatırla)\s*[:,–—-]+(?=\s)",
        "unutma: fıstığa alerjim var",
        "unutmadım, merak etme",
    ),
    Frame(  # Russian
        r"(?:запомни(?:те)?|помни(?:те)?|не забудь(?:те)?|не забывай(?:те)?|имей(?:те)? в виду|учти(?:те)?"
        r"|запиши(?:те)?|сохрани(?:те)?)(?: пожалуйста| себе| это)*(?:\s*,?\s+что\b|\s*[:,–—-]+(?=\s))",
        "запомни, что у меня аллергия на орехи",
        "помнишь, какой был порт?",
    ),
    Frame(  # Arabic
        r"(?:تذكّ?ر(?:ي)?|احفظ(?:ي)?|لا تنس[َى]?|ضع في (?:اعتبارك|بالك)|سجّ?ل|دوّ?ن)(?: من فضلك| عندك)*"
        r"(?:\s+[أا]نّ?(?=\s)|\s*[:،,–—-]+(?=\s)|(?=\s+[أا]نّ?ن?[يا]\s))",
        "تذكر أن اجتماعنا يوم الأحد",
        "هل تتذكر رقم المنفذ؟",
    ),
    Frame(  # Hindi
        r"(?:याद (?:रखना|रखो|रखिए|रखिएगा|रखें|रख)|मत भूलना|न भूलना|ध्यान (?:रखना|रखो|रखें)|नोट (?:करो|कर लो|कर लें))"
        r"(?:\s+कि(?=\s)|\s*[:,–—-]+(?=\s))",
        "याद रखना कि मुझे मूंगफली से एलर्जी है",
        "क्या तुम्हें याद है?",
    ),
    Frame(  # Chinese
        r"(?:请|麻烦|帮我|你)*(?:记住|记得|记一下|记下来?|牢记|别忘了|不要忘记|請記住|記住|記得)(?:一下|这点|这件事)?[：:，,\s]*"
        r"(?=[^吗嗎？?]*$)",
        "请记住我对花生过敏",
        "你还记得端口号吗？",
    ),
    Frame(  # Japanese
        r"(?:という|って)?(?:こと|の)?[をはも、と]*(?:しっかり|よく|ちゃんと|必ず)?(?:覚えて(?:おいて|とい?て)?|憶えて(?:おいて)?"
        r"|忘れないで|記憶して(?:おいて)?|メモして(?:おいて)?|記録して(?:おいて)?)"
        r"(?:ください|下さい|くれ(?:る|ますか)?|ほしい(?:です)?|欲しい(?:です)?|ね|よ)*[。．.!！\s]*$",
        "私はナッツアレルギーだと覚えておいてください",
        "ポート番号を覚えてる？",
        is_behind=True,
    ),
    Frame(
        r"(?:覚えておいて|覚えといて|覚えて|メモ|忘れないで)(?:ください|ね)?[:：、,]\s*",
        "覚えておいて：締め切りは金曜",
        "メモ帳を開いて",
    ),
    Frame(  # Korean
        r"(?:는|은)?\s?(?:것|걸|거|점|사실)?[을를]?\s?(?:꼭|잘)?\s?"
        r"(?:기억해|기억하고 있어|잊지 ?마|잊지 ?말아|명심해|메모해|기록해|적어)\s?"
        r"(?:줘|주세요|주십시오|둬|두세요|놔|라|요|세요)*[.!\s]*$",
        "나는 땅콩 알레르기가 있다는 걸 기억해 줘",
        "포트 번호 기억해?",
        is_behind=True,
    ),
)

_BEFORE: Final = lazy("|".join(rf"(?:{one.pattern})" for one in FRAMES if not one.is_behind), re.IGNORECASE)
_BEHIND: Final = lazy("|".join(rf"(?:{one.pattern})" for one in FRAMES if one.is_behind))
_LEADING: Final = re.compile(r"[\s:,，：、،–—-]+")
_POLITE: Final = lazy(
    r"(?:(?:please|pls|plz|also|and|oh|ok(?:ay)?|btw|by the way|so|hey|just|can you|could you|bitte|und|auch|s['’]il te"
    r" pla[iî]t|stp|et|aussi|por favor|y|per favore|per piacere|e|alsjeblieft|en|ook|snälla|och|proszę|i|lütfen"
    r"|пожалуйста|и|من فضلك|و|कृपया|और|请|また|그리고)\b[\s,:–—-]*)+",
    re.IGNORECASE,
)

_HELD: Final = {
    Reach.PERSON: Phrases(
        {
            "en": "in every repo, in every project, in all projects, in all my projects, in all repos, "
            "in all my repos, "
            "across projects, across all projects, everywhere, globally, in any project, in each project, whatever the "
            "project, in every repository, in every conversation, in every chat, in all conversations",
            "de": "in jedem projekt, in allen projekten, in jedem repo, in allen repos, überall, projektübergreifend, "
            "in jeder unterhaltung, allen meinen projekten, alle meine projekte, für alle projekte",
            "fr": "dans tous les projets, tous mes projets, dans chaque projet, partout, dans tous les dépôts, "
            "dans chaque dépôt, tous projets confondus",
            "es": "en todos los proyectos, todos mis proyectos, en cada proyecto, en todas partes, "
            "en todos los repos, "
            "en cualquier proyecto, en todos lados",
            "it": "in tutti i progetti, tutti i miei progetti, in ogni progetto, ovunque, dappertutto, "
            "in ogni repo, in tutti i repo",
            "pt": "em todos os projetos, todos os meus projetos, em cada projeto, em todo o lado, "
            "em qualquer projeto, "
            "em todos os repositórios, em todo lugar",
            "nl": "in elk project, in alle projecten, al mijn projecten, overal, in elke repo, in alle repos",
            "sv": "i alla projekt, i varje projekt, alla mina projekt, överallt, i alla repon",
            "pl": "we wszystkich projektach, w każdym projekcie, wszędzie, we wszystkich repozytoriach, w każdym repo",
            "tr": "her projede, bütün projelerde, tüm projelerde, tüm projelerimde, her yerde, her repoda",
            "ru": "во всех проектах, в каждом проекте, всех моих проектах, всех моих проектов, "
            "везде, всюду, во всех репозиториях",
            "ar": "في كل المشاريع, في جميع المشاريع, في كل مشاريعي, في كل مشروع, في كل مكان, في جميع مشاريعي",
            "hi": "हर प्रोजेक्ट में, सभी प्रोजेक्ट में, सभी प्रोजेक्ट्स में, हर जगह, हर रेपो में, सारे प्रोजेक्ट्स में",
            "zh": "所有项目, 哪个项目, 每个项目, 任何项目, 所有仓库, 每个仓库, 所有專案, 任何地方, 所有的项目",
            "ja": "すべてのプロジェクト, 全てのプロジェクト, 全プロジェクト, どのプロジェクトでも, どのリポジトリでも, "
            "すべてのリポジトリ, どこでも",
            "ko": "모든 프로젝트, 어느 프로젝트, 어떤 프로젝트, 모든 저장소, 모든 레포, 어디서나",
        }
    ),
    Reach.PROJECT: Phrases(
        {
            "en": "in this repo, in this project, in this codebase, in this repository, for this project, "
            "for this repo, "
            "here, this repo, this project",
            "de": "in diesem projekt, in diesem repo, hier, für dieses projekt, für dieses repo, im projekt hier",
            "fr": "dans ce projet, dans ce dépôt, ici, pour ce projet, dans ce repo, pour ce dépôt",
            "es": "en este proyecto, en este repo, aquí, acá, para este proyecto, en este repositorio",
            "it": "in questo progetto, in questo repo, qui, qua, per questo progetto, in questa repo",
            "pt": "neste projeto, neste repo, aqui, para este projeto, neste repositório, nesse projeto",
            "nl": "in dit project, in deze repo, hier, voor dit project",
            "sv": "i det här projektet, i det här repot, här, för det här projektet, i detta projekt",
            "pl": "w tym projekcie, w tym repo, tutaj, tu, w tym repozytorium",
            "tr": "bu projede, bu repoda, burada, bu depoda, bu proje için",
            "ru": "в этом проекте, в этом репозитории, здесь, тут, в этом репо, для этого проекта",
            "ar": "في هذا المشروع, في هذا المستودع, هنا, لهذا المشروع",
            "hi": "इस प्रोजेक्ट में, इस रेपो में, यहाँ, यहां, इस प्रोजेक्ट के लिए",
            "zh": "这个项目, 这个仓库, 本项目, 本仓库, 这里, 此项目, 這個專案",
            "ja": "このプロジェクト, このリポジトリ, このレポジトリ, このリポ, ここでは",
            "ko": "이 프로젝트, 이 저장소, 이 레포, 여기서",
        }
    ),
}
"""Where a request says that it holds."""


def without_frame(text: str) -> str | None:
    """What a text asks to remember, without the words of the asking. None if it has none of the frames."""
    begin = polite.end() if (polite := _POLITE().match(text)) else 0
    if (found := _BEFORE().match(text, begin)) or (begin and (found := _BEFORE().match(text))):
        end = found.end()
        skipped = _LEADING.match(text, end)
        rest = text[skipped.end() if skipped else end :]
    elif found := _BEHIND().search(text):
        rest = text[begin : found.start()].rstrip(" ,、，")
    else:
        return None
    return rest if any(map(str.isalnum, rest)) else None


def said_reach(text: str) -> Reach | None:
    """Where a text says that it holds: in every project, or in this one."""
    return next((reach for reach, phrases in _HELD.items() if phrases.are_in(text)), None)
