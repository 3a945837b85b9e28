// Written by `kalito-mcp install`; `kalito-mcp uninstall opencode` deletes it.
// Tells kalito what was said, and adds what it remembers to a prompt. It never fails, and waits 5 s at most.
import { spawn } from "node:child_process"

const HOOK = "/home/ada/.local/bin/kalito-hook"

const tell = (event, said) =>
  new Promise((done) => {
    let out = ""
    try {
      const hook = spawn(HOOK, ["opencode", event], { stdio: ["pipe", "pipe", "ignore"], timeout: 5000 })
      hook.on("error", () => done({}))
      hook.stdin.on("error", () => {})
      hook.stdout.on("data", (part) => (out += part))
      hook.on("close", () => {
        try {
          done(JSON.parse(out) ?? {})
        } catch {
          done({})
        }
      })
      hook.stdin.end(JSON.stringify(said))
    } catch {
      done({})
    }
  })

const OURS = { type: "text", synthetic: true }
const idsOf = (part) => ({ id: part.id + "k", sessionID: part.sessionID, messageID: part.messageID })

const textOf = (parts) =>
  parts
    .filter((part) => part.type === "text" && !part.synthetic)
    .map((part) => part.text)
    .join("\n")

export const Kalito = async ({ client, directory }) => {
  const ofSubagents = new Set()
  const reply = async (id) => {
    try {
      const messages = (await client.session.messages({ path: { id } })).data ?? []
      const last = messages.filter((one) => one.info.role === "assistant").at(-1)
      return last ? { message_id: last.info.id, text: textOf(last.parts) } : {}
    } catch {
      return {}
    }
  }
  return {
    "chat.message": async (input, output) => {
      if (ofSubagents.has(input.sessionID)) return
      const said = { session_id: input.sessionID, cwd: directory, prompt: textOf(output.parts) }
      const answer = await tell("chat.message", { ...said, message_id: output.message?.id })
      const text = answer.hookSpecificOutput?.additionalContext
      const last = output.parts.at(-1)
      // A part of the prompt stays in the conversation, as what was said does. Parts are in the order of their ids.
      if (text && last) output.parts.push({ ...OURS, ...idsOf(last), text })
    },
    event: async ({ event }) => {
      const id = event.properties?.sessionID ?? event.properties?.info?.id
      const said = { session_id: id, cwd: directory }
      if (event.type === "session.created" && event.properties?.info?.parentID) ofSubagents.add(id)
      if (ofSubagents.has(id)) return
      if (event.type === "session.idle") await tell(event.type, { ...said, ...(await reply(id)) })
      if (event.type === "session.compacted") await tell(event.type, said)
    },
  }
}
