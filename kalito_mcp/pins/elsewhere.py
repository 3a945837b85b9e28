"""The shapes of sentences worth a pin in German, French, Spanish, Russian, Chinese and Japanese. Pure.

One table a language. A row has the kind, the words that make the rule worth trying, the pattern, and what there is only
one of, if anything. The words of scripts without spaces are phrases. A new language is a new table.
"""

import re
from collections.abc import Sequence
from typing import Final, TypeAlias

from kalito_mcp.pins.rules import PinKind, PinRule, shape
from kalito_mcp.text.lazy_pattern import lazy

_Row: TypeAlias = tuple[PinKind, str, str] | tuple[PinKind, str, str, str]
_NAMED: Final = r"(?-i:[A-ZÄÖÜÉÈÀÂÇÑÁÍÓÚА-ЯЁ][\w'-]{1,30})"
_NUMBER: Final = r"\+?\d[\d ()./-]{4,16}\d"

_GERMAN: Final[Sequence[_Row]] = (
    (
        PinKind.HEALTH,
        "allergisch Allergie Allergien Unverträglichkeit intolerant vertrage verträgt",
        r"\ballergisch (?:gegen|auf)\b|\b(?:habe|hat) (?:eine )?[\w-]*(?:allergie|unverträglichkeit)|\bvert(?:rage"
        r"|rägt) (?:kein|nicht)|-?intolerant\b",
    ),
    (
        PinKind.HEALTH,
        "Diabetes Asthma Epilepsie schwanger Diabetiker Diabetikerin",
        r"\b(?:ich|er|sie|habe|hat|bin|ist)\b.{0,40}\b(?:Diabetes|Asthma|Epilepsie|schwanger|Diabetiker(?:in)?)\b",
    ),
    (PinKind.IDENTITY, "heiße heisse Name", rf"\bich hei(?:ß|ss)e {_NAMED}|\bmein Name ist {_NAMED}"),
    (
        PinKind.CONTACT,
        "Adresse wohne wohnen umgezogen gezogen",
        r"\bAdresse (?:ist|lautet)\b.{0,60}\d|\b(?:ich wohne|wir wohnen)\b.{0,60}\b(?:in|im|an|am)\b.{0,40}\d"
        r"|\bumgezogen\b.{0,60}\d",
        "address",
    ),
    (
        PinKind.CONTACT,
        "Nummer Telefonnummer Handynummer Telefon erreichbar",
        rf"(?:nummer|telefon|erreichbar)\b.{{0,60}}{_NUMBER}",
    ),
    (
        PinKind.FACT,
        "wohne wohnen lebe leben umgezogen gezogen",
        rf"\b(?:ich (?:wohne|lebe)|wir (?:wohnen|leben|sind))\b.{{0,30}}\b(?:in|bei|nach) {_NAMED}"
        rf"|\bnach {_NAMED} (?:um)?gezogen",
        "home",
    ),
    (
        PinKind.PREFERENCE,
        "Vegetarier Vegetarierin vegetarisch vegan Veganer Veganerin esse",
        r"\b(?:bin|ist|sind|lebe|esse|isst)\b.{0,20}\b(?:Vegetarier(?:in)?|vegetarisch|vegan|Veganer(?:in)?)\b"
        r"|\besse (?:kein|keine|keinen|nie)\b",
    ),
    (
        PinKind.PREFERENCE,
        "bevorzuge Lieblingsessen lieber",
        r"\bich bevorzuge\b|\bmein(?:e)? Lieblings\w+ (?:ist|sind)\b|\b(?:trinke|esse|fahre|mag) (?:ich )?lieber\b",
    ),
    (
        PinKind.PREFERENCE,
        "antworte Antworte antworten immer Bitte bitte",
        r"^(?:bitte )?(?:antworte|schreib|schreibe|nenne|gib|verwende|benutze|duze|sieze)\b.{0,60}\b(?:immer|nur"
        r"|stets|künftig|in Zukunft|kurz|auf Deutsch|nie)\b",
    ),
    (
        PinKind.FACT,
        "Bruder Schwester Mutter Vater Mann Frau Sohn Tochter Oma Opa Freundin Freund Partner Partnerin Chef "
        "Chefin Vermieter Vermieterin Hund Katze Kater Arzt Ärztin Zahnarzt",
        rf"\b(?:mein|meine|unser|unsere) (?:\w{{1,14}} )?(?:Bruder|Schwester|Mutter|Vater|Mann|Frau|Sohn|Tochter"
        rf"|Oma|Opa|Freundin|Freund|Partner(?:in)?|Chef(?:in)?|Vermieter(?:in)?|Hund|Katze|Kater|Arzt|Ärztin"
        rf"|Zahnarzt),? (?:heißt|heisst|ist|arbeitet|wohnt|lebt|wird|hat|studiert|{_NAMED})\b",
    ),
    (
        PinKind.FACT,
        "arbeite Stelle angefangen Firma Beruf",
        rf"\bich arbeite\b.{{0,20}}\b(?:als|bei|für|in)\b|\bneue (?:Stelle|Arbeit)\b|\b(?:fange"
        rf"|angefangen)\b.{{0,30}}\bbei {_NAMED}|\bbei (?:der Firma )?{_NAMED}.{{0,20}}angefangen",
    ),
    (PinKind.DATE, "Geburtstag", r"\bGeburtstag\b.{0,30}\bam \d"),
    (
        PinKind.DATE,
        "Termin Frist Abgabe Abgabetermin Deadline Flug Prüfung",
        r"\b(?:Termin|Frist|Abgabe(?:termin)?|Deadline|Flug|Prüfung)\b.{0,60}\b(?:am|bis|ist der|um)\b.{0,12}\d",
    ),
    (
        PinKind.DECISION,
        "entschieden beschlossen geeinigt",
        r"\b(?:ich|wir) (?:haben?|hatten) (?:uns )?.{0,60}(?:entschieden|beschlossen|geeinigt)\b|\b(?:haben wir"
        r"|habe ich)\b.{0,60}(?:entschieden|beschlossen)",
    ),
)
_FRENCH: Final[Sequence[_Row]] = (
    (
        PinKind.HEALTH,
        "allergique allergiques allergie intolérant intolérante",
        r"\ballergiques? (?:à|aux|au)\b|\b(?:ai|a) une (?:allergie|intolérance)|\bintolérante? (?:à|au)\b",
    ),
    (
        PinKind.HEALTH,
        "diabétique asthmatique diabète asthme enceinte",
        r"\b(?:suis|est|ai|a)\b.{0,12}\b(?:diabétique|asthmatique|enceinte|(?:du|le) diabète|de l'asthme)\b",
    ),
    (PinKind.IDENTITY, "m'appelle nom", rf"\bje m'appelle {_NAMED}|\bmon nom est {_NAMED}"),
    (
        PinKind.CONTACT,
        "adresse habite habitons déménagé",
        r"\badresse (?:est|:)|\b(?:j'habite|nous habitons)\b.{0,30}\d.{0,20}\b(?:rue|avenue|boulevard|place"
        r"|chemin)\b|\bdéménagé\b.{0,40}\d.{0,20}\b(?:rue|avenue|boulevard)\b",
        "address",
    ),
    (PinKind.CONTACT, "numéro téléphone", rf"\b(?:numéro|téléphone)\b.{{0,60}}{_NUMBER}"),
    (
        PinKind.FACT,
        "j'habite J'habite habitons vis vivons déménagé",
        rf"\b(?:j'habite|nous habitons|je vis|nous vivons|on habite) (?:à|au|en|dans) \w|\bdéménagé (?:à|au"
        rf"|en) {_NAMED}",
        "home",
    ),
    (
        PinKind.PREFERENCE,
        "végétarien végétarienne végane vegan mange",
        r"\b(?:suis|est|devenue?) (?:végétarien(?:ne)?|végane?|vegan)\b|\bje ne mange (?:pas|plus|jamais)\b",
    ),
    (PinKind.PREFERENCE, "préfère préférée préféré", r"\bje préfère \w|\bmon \w+ préféré|\bma \w+ préférée"),
    (
        PinKind.PREFERENCE,
        "réponds Réponds répondez Répondez toujours",
        r"^(?:s'il te plaît,? )?(?:réponds|répondez|écris|écrivez|utilise|utilisez)\b.{0,60}\b(?:toujours"
        r"|seulement|jamais|brièvement|en français|désormais)\b",
    ),
    (
        PinKind.FACT,
        "frère sœur soeur mère père mari femme fils fille chien chat chatte patron patronne chef propriétaire "
        "médecin dentiste compagnon compagne",
        rf"\b(?:mon|ma|notre) (?:\w{{1,14}} )?(?:frère|sœur|soeur|mère|père|mari|femme|fils|fille|chien|chat"
        rf"|chatte|patron(?:ne)?|chef|propriétaire|médecin|dentiste|compagnon|compagne),? (?:s'appelle|est|habite"
        rf"|travaille|vit|a|étudie|{_NAMED})\b",
    ),
    (
        PinKind.FACT,
        "travaille poste embauché embauchée",
        r"\bje travaille (?:comme|chez|pour|à|dans)\b|\b(?:nouveau|nouvel) (?:poste|emploi|travail)\b"
        r"|\bembauchée? (?:chez|par)\b",
    ),
    (PinKind.DATE, "anniversaire", r"\banniversaire\b.{0,30}\b(?:est|tombe)? ?le \d"),
    (
        PinKind.DATE,
        "rendez-vous échéance délai vol examen remise",
        r"\b(?:rendez-vous|échéance|délai|vol|examen|remise|date limite)\b.{0,60}\b(?:le|à|avant le) \d",
    ),
    (
        PinKind.DECISION,
        "décidé convenu",
        r"\b(?:j'ai|nous avons|on a) (?:finalement )?(?:décidé|convenu|choisi) (?:de|d'|que)",
    ),
)
_SPANISH: Final[Sequence[_Row]] = (
    (
        PinKind.HEALTH,
        "alérgico alérgica alérgicos alergia intolerante intolerancia",
        r"\balérgic[oa]s? a(?:l|\b)|\b(?:tengo|tiene) (?:una )?(?:alergia|intolerancia) a\b|\bintolerante a\b",
    ),
    (
        PinKind.HEALTH,
        "diabético diabética diabetes asma embarazada epilepsia",
        r"\b(?:soy|es|tengo|tiene|está|estoy)\b.{0,12}\b(?:diabétic[oa]|diabetes|asma|embarazada|epilepsia)\b",
    ),
    (PinKind.IDENTITY, "llamo nombre", rf"\bme llamo {_NAMED}|\bmi nombre es {_NAMED}"),
    (
        PinKind.CONTACT,
        "dirección vivo vivimos mudado mudamos mudé",
        r"\bdirección (?:es|nueva es)\b|\b(?:vivo|vivimos) en (?:la )?(?:calle|avenida|plaza)\b|\b(?:mud(?:é|amos"
        r"|ado))\b.{0,30}\b(?:calle|avenida|plaza)\b",
        "address",
    ),
    (PinKind.CONTACT, "número teléfono móvil", rf"\b(?:número|teléfono|móvil)\b.{{0,60}}{_NUMBER}"),
    (
        PinKind.FACT,
        "vivo vivimos mudé mudamos mudado",
        rf"\b(?:vivo|vivimos) en \w|\b(?:me mudé|nos mudamos|nos hemos mudado) a {_NAMED}",
        "home",
    ),
    (
        PinKind.PREFERENCE,
        "vegetariano vegetariana vegano vegana como",
        r"\b(?:soy|es|somos) (?:vegetarian|vegan)[oa]s?\b|\bno como (?:carne|cerdo|pescado|gluten|mariscos|lácteos"
        r"|huevos)\b",
    ),
    (PinKind.PREFERENCE, "prefiero favorito favorita", r"\bprefiero (?!no\b)\w|\bmi \w+ favorit[oa] es\b"),
    (
        PinKind.PREFERENCE,
        "responde Responde contesta Contesta siempre",
        r"^(?:por favor,? )?(?:responde|contesta|escribe|usa|utiliza)\b.{0,60}\b(?:siempre|solo|sólo|nunca"
        r"|brevemente|en español|a partir de ahora)\b",
    ),
    (
        PinKind.FACT,
        "hermano hermana madre padre marido esposo esposa hijo hija perro perra gato gata jefe jefa casero casera "
        "médico dentista novio novia pareja",
        rf"\b(?:mi|nuestro|nuestra) (?:\w{{1,14}} )?(?:hermano|hermana|madre|padre|marido|esposo|esposa|hijo|hija"
        rf"|perro|perra|gato|gata|jefe|jefa|casero|casera|médico|dentista|novio|novia|pareja),? (?:se llama|es"
        rf"|vive|trabaja|tiene|estudia|{_NAMED})\b",
    ),
    (PinKind.FACT, "trabajo empleo empecé", r"\btrabajo (?:como|en|para|de)\b|\bnuevo (?:trabajo|empleo|puesto)\b"),
    (PinKind.DATE, "cumpleaños", r"\bcumpleaños\b.{0,30}\bel \d"),
    (
        PinKind.DATE,
        "cita plazo vuelo examen entrega",
        r"\b(?:cita|plazo|vuelo|examen|entrega|fecha límite)\b.{0,60}\bel \d",
    ),
    (
        PinKind.DECISION,
        "decidido decidimos acordado acordamos decidí",
        r"\b(?:he|hemos) (?:decidido|acordado)\b|\b(?:decidimos|acordamos|decidí) \w",
    ),
)
_RUSSIAN: Final[Sequence[_Row]] = (
    (
        PinKind.HEALTH,
        "аллергия аллергию непереносимость аллергик",
        r"\bаллерги[яюи] на\b|\bнепереносимость\b|\bаллергик\b",
    ),
    (
        PinKind.HEALTH,
        "диабет астма эпилепсия беременна",
        r"\bу (?:меня|него|неё|нее|моей|моего)\b.{0,30}\b(?:диабет|астма|эпилепсия)\b|\bбеременна\b",
    ),
    (PinKind.IDENTITY, "зовут", rf"\bменя зовут {_NAMED}"),
    (
        PinKind.CONTACT,
        "адрес живу живём переехали переехал переехала",
        r"\bадрес\b.{0,60}\d|\b(?:живу|живём|живем)\b.{0,12}\b(?:улице|проспекте)\b"
        r"|\bпереехал\w?\b.{0,12}\b(?:улицу|проспект)\b",
        "address",
    ),
    (PinKind.CONTACT, "телефон номер", rf"\b(?:телефон|номер)\b.{{0,60}}{_NUMBER}"),
    (
        PinKind.FACT,
        "живу живём живем переехали переехал переехала",
        rf"\b(?:живу|живём|живем) (?:в|во|на|под) \w|\bпереехал\w? в {_NAMED}",
        "home",
    ),
    (PinKind.PREFERENCE, "вегетарианец вегетарианка веган ем", r"\b(?:вегетариан(?:ец|ка)|веган(?:ка)?)\b|\bя не ем\b"),
    (PinKind.PREFERENCE, "предпочитаю любимый любимая любимое", r"\bпредпочитаю\b|\bмо[йяё] любим(?:ый|ая|ое)\b"),
    (
        PinKind.PREFERENCE,
        "отвечай Отвечай отвечайте Отвечайте пиши Пиши",
        r"^(?:пожалуйста,? )?(?:отвечай|отвечайте|пиши|пишите|используй)\b.{0,60}\b(?:всегда|только|кратко|никогда"
        r"|по-русски)\b",
    ),
    (
        PinKind.FACT,
        "брат брата сестра сестру мать мама маму отец отца папа папу муж "
        "мужа жена жену сын сына дочь собака собаку кот "
        "кота кошка кошку начальник начальника начальница врач врача",
        rf"\b(?:мой|моя|моего|мою|моей|наш|наша|нашу|нашего) (?:\w{{1,14}} )?(?:брат\w?|сестр\w|мать|мам\w|отец"
        rf"|отца|пап\w|муж\w?|жен\w|сын\w?|дочь|собак\w|кот\w?|кошк\w|начальник\w?|начальниц\w|врач\w?)(?:,| —"
        rf"| -)? (?:зовут|живёт|живет|работает|учится|{_NAMED})",
    ),
    (PinKind.FACT, "работаю устроился устроилась", r"\bработаю (?:в|на|\w+ом\b|\w+ой\b)|\bустроил(?:ся|ась)\b"),
    (PinKind.DATE, "рождения", r"\bдень рождения\b.{0,30}\d"),
    (
        PinKind.DATE,
        "срок дедлайн рейс экзамен встреча",
        r"\b(?:срок|дедлайн|рейс|экзамен|встреча)\b.{0,60}\b\d{1,2} (?:янв|фев|мар|апр|ма|июн|июл|авг|сен|окт|ноя|дек)",
    ),
    (PinKind.DECISION, "решили решил решила договорились", r"\b(?:мы|я) (?:решил\w?|договорились)\b"),
)
_CHINESE: Final[Sequence[_Row]] = (
    (PinKind.HEALTH, "过敏", r"对.{1,12}过敏|有.{1,8}过敏"),
    (
        PinKind.HEALTH,
        "糖尿病 哮喘 怀孕",
        r"(?:我|他|她|妈妈|爸爸|妻子|老婆).{0,6}(?:有|得了|患有).{0,4}(?:糖尿病|哮喘)|(?:我|妻子|老婆|妹妹|姐姐)怀孕",
    ),
    (PinKind.IDENTITY, "我叫 名字是", r"我叫(?!做|他|她|你|了)\w|我的名字是"),
    (
        PinKind.CONTACT,
        "地址 住在 搬到",
        r"地址(?:是|：|改为|改成)|(?:我|我们).{0,4}(?:住在|搬到了?).{1,20}(?:路|街|巷).{0,4}\d",
        "address",
    ),
    (PinKind.CONTACT, "电话 号码 手机", r"(?:电话|号码|手机号?).{0,8}\d{5,}|(?:电话|号码).{0,10}\d[\d -]{5,}"),
    (PinKind.FACT, "住在 搬到", r"(?:我|我们|我家)[^，。,]{0,4}(?:住在|搬到了?)\w{2,}", "home"),
    (PinKind.PREFERENCE, "吃素 素食 不吃", r"我.{0,4}(?:吃素|是素食|不吃(?!了|饭))"),
    (PinKind.PREFERENCE, "更喜欢 最喜欢", r"我.{0,4}(?:更|最)喜欢(?!你|这|那)\w"),
    (PinKind.PREFERENCE, "请总是 请用 以后请 请一直", r"(?:请总是|请一直|以后请|请用中文|请用\w{1,6}回答)"),
    (
        PinKind.FACT,
        "我家的 我妹妹 我姐姐 我哥哥 我弟弟 我妈妈 我爸爸 我妻子 我老婆 我丈夫 我老公 我儿子 我女儿 "
        "我的狗 我的猫 我老板 我的老板 房东 我们的狗 我们的猫",
        r"我(?:们|家)?的?(?:妹妹|姐姐|哥哥|弟弟|妈妈|爸爸|妻子|老婆|丈夫|老公|儿子|女儿|狗|猫|老板|房东|小狗|小猫)"
        r".{0,6}(?:叫|是|住在?|在.{1,10}(?:工作|上班|上学)|今年)",
    ),
    (
        PinKind.FACT,
        "工作 上班 养了",
        r"我.{0,4}在.{1,16}(?:工作|上班)(?!的时候)|我.{0,6}是.{1,8}(?:工程师|老师|医生|护士|律师|设计师)|(?:我|我们|我家)养了",
    ),
    (PinKind.DATE, "生日", r"生日.{0,4}(?:是|在).{0,6}[\d一二三四五六七八九十]"),
    (PinKind.DATE, "截止 航班 预约 考试", r"(?:截止日期?|航班|预约|考试|面试).{0,10}\d{1,2}月\d{1,2}"),
    (PinKind.DECISION, "决定", r"(?:我|我们).{0,6}决定(?:了|要|用|不|把|在|采用|搬)"),
)
_JAPANESE: Final[Sequence[_Row]] = (
    (PinKind.HEALTH, "アレルギー", r"アレルギーが(?:あり|ある)|アレルギー(?:です|なので|だ)"),
    (PinKind.HEALTH, "糖尿病 喘息 妊娠", r"(?:糖尿病|喘息)(?:です|があり|がある|を患)|妊娠して"),
    (PinKind.IDENTITY, "名前は と申し といいます", r"(?:私|僕|俺)の名前は|と申します|(?:私|僕)は\w{1,12}といいます"),
    (PinKind.CONTACT, "住所 引っ越", r"住所は.{0,30}\d|引っ越し.{0,30}\d", "address"),
    (PinKind.CONTACT, "電話 番号", r"(?:電話番号|番号|電話)は.{0,10}\d[\d -]{4,}"),
    (PinKind.FACT, "住んで 引っ越", r"に住んでい|(?:へ|に)引っ越し(?:ました|た)", "home"),
    (
        PinKind.PREFERENCE,
        "ベジタリアン ヴィーガン 食べません 食べられ",
        r"(?:ベジタリアン|ヴィーガン)(?:です|なので|だ)|(?:肉|魚|豚肉|牛肉|卵)(?:は|を)食べ(?:ません|られ)",
    ),
    (PinKind.PREFERENCE, "の方が好き 一番好き が好きです", r"(?:の方が|ほうが|一番)好き"),
    (
        PinKind.PREFERENCE,
        "いつも 必ず 答えて 今後",
        r"(?:いつも|必ず|常に|今後は?).{0,20}(?:ください|下さい|お願いします)",
    ),
    (
        PinKind.FACT,
        "妹 姉 兄 弟 母 父 妻 夫 息子 娘 犬 猫 上司 大家",
        r"(?:私の|うちの|僕の)?(?:妹|姉|兄|弟|母|父|妻|夫|息子|娘|犬|猫|上司|大家さん?)(?:の名前)?(?:は|の).{1,20}(?:という|といいます|に住んで|で働いて|です|と言います)",
    ),
    (PinKind.FACT, "働いて 勤めて 飼って", r"(?:で|に)(?:働いて|勤めて)い(?:ます|る)|を飼ってい(?:ます|る)"),
    (PinKind.DATE, "誕生日", r"誕生日は.{0,6}\d"),
    (PinKind.DATE, "締め切り 締切 予約 面接 試験", r"(?:締め切り|締切|予約|面接|試験)は.{0,10}\d{1,2}月"),
    (
        PinKind.DECISION,
        "決めました 決めた 決定しました ことにしました",
        r"(?:決めました|決めた|決定しました|ことにしました)",
    ),
)


_DOUBT: Final = lazy(
    r"\b(?:wenn|falls|vielleicht|könnte|könnten|würde|ob|angeblich|sagte|gesagt|peut-être|pourrait|pourrais|dit"
    r"|disait|si|"
    r"quizás|quizá|tal vez|podría|dijo|dice|если|может быть|возможно|наверное|говорит|сказал\w?)\b"
    r"|如果|也许|可能|听说|据说|他说|她说|もし|かもしれ|らしい|そうです",
    re.IGNORECASE,
)
"""The words of doubt and of others' words. `si` is `yes` in Spanish only with its accent."""


def _rule(row: _Row, *, is_spaced: bool) -> tuple[PinRule, ...]:
    kind, words, pattern = row[:3]
    subject = row[3] if len(row) > 3 else ""  # noqa: PLR2004 - the row has a subject
    if is_spaced:
        return (shape(kind, pattern, words=words, subject=subject, doubt=_DOUBT),)
    return tuple(shape(kind, pattern, phrase=phrase, subject=subject, doubt=_DOUBT) for phrase in words.split())


SPACED_RULES: Final = tuple(
    rule for table in (_GERMAN, _FRENCH, _SPANISH, _RUSSIAN) for row in table for rule in _rule(row, is_spaced=True)
)
UNSPACED_RULES: Final = tuple(
    rule for table in (_CHINESE, _JAPANESE) for row in table for rule in _rule(row, is_spaced=False)
)
