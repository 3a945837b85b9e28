"""OpenCode. Its hooks are functions of a plugin, which is a file of our own.

Source: opencode.ai/docs/plugins, and 1.18.33 as tried out.
"""

import json
from pathlib import Path, PurePath
from typing import Final

from kalito_mcp.hosts import jsonc
from kalito_mcp.hosts.facts import EntryFile, Host, Launcher, OwnFile
from kalito_mcp.hosts.places import Places

_MARK: Final = "Written by `kalito-mcp install`"
_PLUGIN: Final = """\
// {mark}; `kalito-mcp uninstall opencode` deletes it.
// Tells kalito what was said, and adds what it remembers to a prompt. It never fails, and waits 5 s at most.
import {{ spawn }} from "node:child_process"

const HOOK = {hook}

const tell = (event, said) =>
  new Promise((done) => {{
    let out = ""
    try {{
      const hook = spawn(HOOK, ["opencode", event], {{ stdio: ["pipe", "pipe", "ignore"], timeout: 5000 }})
      hook.on("error", () => done({{}}))
      hook.stdin.on("error", () => {{}})
      hook.stdout.on("data", (part) => (out += part))
      hook.on("close", () => {{
        try {{
          done(JSON.parse(out) ?? {{}})
        }} catch {{
          done({{}})
        }}
      }})
      hook.stdin.end(JSON.stringify(said))
    }} catch {{
      done({{}})
    }}
  }})

const OURS = {{ type: "text", synthetic: true }}
const idsOf = (part) => ({{ id: part.id + "k", sessionID: part.sessionID, messageID: part.messageID }})

const textOf = (parts) =>
  parts
    .filter((part) => part.type === "text" && !part.synthetic)
    .map((part) => part.text)
    .join("\\n")

export const Kalito = async ({{ client, directory }}) => {{
  const ofSubagents = new Set()
  const reply = async (id) => {{
    try {{
      const messages = (await client.session.messages({{ path: {{ id }} }})).data ?? []
      const last = messages.filter((one) => one.info.role === "assistant").at(-1)
      return last ? {{ message_id: last.info.id, text: textOf(last.parts) }} : {{}}
    }} catch {{
      return {{}}
    }}
  }}
  return {{
    "chat.message": async (input, output) => {{
      if (ofSubagents.has(input.sessionID)) return
      const said = {{ session_id: input.sessionID, cwd: directory, prompt: textOf(output.parts) }}
      const answer = await tell("chat.message", {{ ...said, message_id: output.message?.id }})
      const text = answer.hookSpecificOutput?.additionalContext
      const last = output.parts.at(-1)
      // A part of the prompt stays in the conversation, as what was said does. Parts are in the order of their ids.
      if (text && last) output.parts.push({{ ...OURS, ...idsOf(last), text }})
    }},
    event: async ({{ event }}) => {{
      const id = event.properties?.sessionID ?? event.properties?.info?.id
      const said = {{ session_id: id, cwd: directory }}
      if (event.type === "session.created" && event.properties?.info?.parentID) ofSubagents.add(id)
      if (ofSubagents.has(id)) return
      if (event.type === "session.idle") await tell(event.type, {{ ...said, ...(await reply(id)) }})
      if (event.type === "session.compacted") await tell(event.type, said)
    }},
  }}
}}
"""


def _folder(places: Places) -> PurePath:
    return places.config() / "opencode"


def _config(places: Places) -> PurePath:
    """The file that is there: both names are read, and a second one would hide what is in the first."""
    commented = _folder(places) / "opencode.jsonc"
    return commented if Path(commented).exists() else _folder(places) / "opencode.json"


def _plugin(places: Places) -> PurePath:
    return _folder(places) / "plugins" / "kalito.js"


def _entry(launcher: Launcher) -> dict[str, object]:
    return {"type": "local", "command": [launcher.server, "serve"], "enabled": True}


def _content(launcher: Launcher) -> str:
    return _PLUGIN.format(mark=_MARK, hook=json.dumps(launcher.hook))


HOST: Final = Host(
    key="opencode",
    name="OpenCode",
    signs=(_folder,),
    programs=("opencode",),
    entry=EntryFile(_config, jsonc, ("mcp",), _entry, environment="environment"),
    hooks=OwnFile(_plugin, _content, _MARK),
    confirm=("start it again; /status lists kalito",),
)
