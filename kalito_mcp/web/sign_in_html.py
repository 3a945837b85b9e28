"""The sign-in page as HTML: no script, and nothing from elsewhere. Whatever a program says of itself is escaped."""

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from typing import Final
from urllib.parse import urlsplit

from starlette.responses import HTMLResponse

from kalito_mcp.access.redirects import is_on_device
from kalito_mcp.domain.access import Permission

_STYLE: Final = """
:root { color-scheme: light dark; --back: #f4f4f1; --card: #fff; --text: #1d1d1b; --faint: #5d5d58; --line: #c9c9c2;
  --strong: #1f5f4a; --on-strong: #fff; --wrong: #9c1c1c; --wrong-back: #fdeeee; }
@media (prefers-color-scheme: dark) { :root { --back: #161715; --card: #20221f; --text: #ecece8; --faint: #a9aaa3;
  --line: #494b46; --strong: #7fd1b0; --on-strong: #10221b; --wrong: #ffb4ab; --wrong-back: #3b1d1b; } }
* { box-sizing: border-box; }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; padding: 1.25rem; background: var(--back);
  color: var(--text); font: 1rem/1.5 system-ui, sans-serif; }
main { width: 100%; max-width: 27rem; background: var(--card); border: 1px solid var(--line); border-radius: .9rem;
  padding: 1.75rem; }
h1 { font-size: 1.3rem; line-height: 1.3; margin: 0 0 .75rem; overflow-wrap: anywhere; }
p { margin: 0 0 1rem; overflow-wrap: anywhere; }
.brand { font-size: .85rem; font-weight: 600; letter-spacing: .04em; color: var(--faint); margin-bottom: .75rem; }
.faint { color: var(--faint); font-size: .9rem; }
.wrong { color: var(--wrong); background: var(--wrong-back); border-radius: .5rem; padding: .6rem .8rem; }
fieldset { border: 1px solid var(--line); border-radius: .6rem; margin: 0 0 1.1rem; padding: .5rem .9rem .7rem; }
legend { padding: 0 .35rem; font-weight: 600; }
.choice { display: grid; grid-template-columns: auto 1fr; gap: .1rem .6rem; align-items: start; padding: .3rem 0;
  font-weight: 400; margin: 0; cursor: pointer; }
.choice input { margin: .35rem 0 0; accent-color: var(--strong); }
.choice span span { display: block; color: var(--faint); font-size: .9rem; }
label { display: block; font-weight: 600; margin-bottom: .25rem; }
input[type=text], input[type=password] { width: 100%; font: inherit; color: inherit; background: transparent;
  border: 1px solid var(--faint); border-radius: .5rem; padding: .55rem .7rem; margin-bottom: 1rem; }
.buttons { display: flex; gap: .75rem; flex-wrap: wrap; }
button { flex: 1 1 8rem; font: inherit; font-weight: 600; border-radius: .5rem; padding: .65rem 1rem; cursor: pointer;
  border: 1px solid var(--strong); background: var(--strong); color: var(--on-strong); }
button.second { background: transparent; color: var(--text); border-color: var(--faint); }
:focus-visible { outline: 3px solid var(--strong); outline-offset: 2px; }
code { font: .95em ui-monospace, monospace; background: var(--back); padding: .1rem .3rem; border-radius: .25rem; }
"""
_STYLE_SOURCE: Final = f"'sha256-{b64encode(sha256(_STYLE.encode()).digest()).decode()}'"
_WORDS: Final[Mapping[Permission, tuple[str, str]]] = {
    Permission.READ: ("Read", "Find and show what is remembered."),
    Permission.WRITE: ("Read and write", "Also record, correct and forget."),
    Permission.ADMIN: ("Everything", "Also erase for good, and export all."),
}


@dataclass(frozen=True, slots=True)
class Question:
    """The question on the page. `described_at` is the host whose document describes the client; without it, the
    client's name is unverified. The client asks for `permission`; `chosen` is what the person chose before, if
    anything."""

    handle: str
    client_name: str
    described_at: str | None
    answers_to: str
    redirect_uri: str
    permission: Permission
    chosen: Permission | None
    owner: str
    can_sign_in: bool
    problem: str | None = None


def question_page(question: Question, status: int = 200) -> HTMLResponse:
    """The page that asks whether a program may use the memory."""
    name = f"<bdi>{escape(question.client_name)}</bdi>"
    origin = (
        f"It is described at <b>{escape(question.described_at)}</b>."
        if question.described_at
        else "The program chose this name itself; nobody has checked it."
    )
    problem = f'<p class="wrong" role="alert" id="problem">{escape(question.problem)}</p>' if question.problem else ""
    body = f"""
<p class="brand">kalito memory</p>
<h1>Let {name} use your memory?</h1>
<p>The answer goes to {_place(question)}. <span class="faint">{origin} Allow it only if you have just
started to connect it yourself.</span></p>
{problem}
<form method="post" action="/sign-in">
<input type="hidden" name="request" value="{escape(question.handle)}">
{_allowing(question) if question.can_sign_in else _CANNOT_SIGN_IN}
<button class="second" type="submit" name="answer" value="deny" formnovalidate>Deny</button>
</div>
</form>"""
    return _page("Sign in", body, status, has_form=True)


def problem_page(said: str, status: int, *, back: str | None = None) -> HTMLResponse:
    """A page that says what went wrong. `back` is the program's URL, where the person can go back to report the
    error."""
    body = f'<p class="brand">kalito memory</p><h1>This did not work</h1><p role="alert">{escape(said)}</p>'
    if back is not None:
        host = escape(urlsplit(back).netloc)
        body += f'<p>The program says that it is at <b>{host}</b>: <a href="{escape(back)}">go back there</a>.</p>'
    return _page("Sign in", body, status)


def _place(question: Question) -> str:
    """Where the code goes, by the host that decides it."""
    host = f"<b>{escape(question.answers_to)}</b>"
    return f"a program on this device ({host})" if is_on_device(question.redirect_uri) else host


_CANNOT_SIGN_IN: Final = """
<p class="wrong" role="alert">No passphrase is set yet, so nobody can sign in. On the machine where the memory is, run
<code>kalito-mcp passphrase</code>, and then load this page again.</p>
<div class="buttons">"""


def _allowing(question: Question) -> str:
    offered = [one for one in Permission if question.permission.includes(one)]
    # Never the greatest by default: who wants to give all chooses it.
    usual = Permission.WRITE if Permission.WRITE in offered else Permission.READ
    default = question.chosen if question.chosen in offered else usual
    choices = "".join(
        f'<label class="choice"><input type="radio" name="permission" value="{one}"'
        f"{' checked' if one is default else ''}><span>{_WORDS[one][0]}<span>{_WORDS[one][1]}</span></span></label>"
        for one in offered
    )
    described = ' aria-describedby="problem" aria-invalid="true"' if question.problem else ""
    return f"""
<fieldset><legend>It may</legend>{choices}</fieldset>
<label for="owner">Whose memory</label>
<input type="text" id="owner" name="owner" value="{escape(question.owner)}" autocomplete="username" required
 maxlength="200" autocapitalize="none" spellcheck="false">
<label for="passphrase">Passphrase</label>
<input type="password" id="passphrase" name="passphrase" autocomplete="current-password" required autofocus
 maxlength="1024"{described}>
<div class="buttons">
<button type="submit" name="answer" value="allow">Allow</button>"""


def _page(title: str, body: str, status: int, *, has_form: bool = False) -> HTMLResponse:
    page = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="same-origin">
<title>{title} - kalito memory</title>
<style>{_STYLE}</style>
</head>
<body><main>{body}</main></body>
</html>
"""
    return HTMLResponse(page, status, _headers(has_form=has_form))


def _headers(*, has_form: bool) -> dict[str, str]:
    # No form-action where there is a form: Chrome also holds the form to it wherever the program's address sends the
    # browser on, such as from claude.ai to claude://. Nothing on the page is anybody else's HTML.
    targets = "" if has_form else "form-action 'none'; "
    policy = f"default-src 'none'; style-src {_STYLE_SOURCE}; {targets}frame-ancestors 'none'; base-uri 'none'"
    # No Cross-Origin-Opener-Policy: a host that opens the page in another window would take that window for closed.
    return {
        "content-security-policy": policy,
        "x-frame-options": "DENY",
        "x-content-type-options": "nosniff",
        "cache-control": "no-store",
        # `no-referrer` would also take the Origin off the form, by which we know that it is ours.
        "referrer-policy": "same-origin",
        "permissions-policy": "camera=(), geolocation=(), microphone=()",
    }
