// The tools: their definitions, and what each does with the session, the store and the folder.

import { contentOf, nameFor } from './files.mjs'
import { ToolError } from './mcp_stdio.mjs'
import { isChat, read } from './message.mjs'

const text = (description, maxLength) => ({ type: 'string', description, maxLength })
const number = (description, minimum, maximum, byDefault) => ({ type: 'integer', description, minimum, maximum, default: byDefault })
const object = (properties, ...required) => ({ type: 'object', properties, required, additionalProperties: false })

const chatText = text('The chat: its id as list_chats gives it, or a phone number with its country code.', 100)
const reads = { readOnlyHint: true, openWorldHint: true }
const sends = { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: true }

/** A chat as it was named → its id. */
export function chatId(name) {
  const given = name.trim()
  if (isChat(given)) return given
  const digits = given.replace(/[\s()+./-]/g, '')
  if (/^[1-9][0-9]{6,14}$/.test(digits)) return `${digits}@s.whatsapp.net`
  throw new ToolError(`"${given.slice(0, 60)}" is no chat: give an id of list_chats or a phone number with its country code`)
}

/** library: {toDataURL(text), download(media, kind) → Buffer}, which load the packages. */
export function tools({ session, store, folder, library }) {
  const need = async () => {
    const socket = await session.ready()
    if (socket) return socket
    const { phase, message } = session.state
    if (phase === 'need_scan' || phase === 'logged_out' || phase === 'idle') throw new ToolError('nobody is signed in to WhatsApp')
    throw new ToolError(`WhatsApp is not connected: ${message || 'no answer'}`)
  }
  const target = async (socket, name) => {
    const jid = chatId(name)
    if (!jid.endsWith('@s.whatsapp.net') || store.chats.has(jid)) return jid
    const [found] = (await socket.onWhatsApp(jid)) ?? []
    if (!found?.exists) throw new ToolError(`nobody on WhatsApp has the number ${jid.split('@')[0]}`)
    return found.jid
  }
  const sent = (chat, message) => {
    const kept = read(message)
    if (kept) store.add(kept)
    return { sent: true, chat, id: message?.key?.id ?? null }
  }
  return [
    {
      name: 'login_status', title: 'Sign-in Status', description: 'Whether this machine is linked to a phone, and the code to link it.', inputSchema: object({}), annotations: reads,
      run: async () => {
        const now = await session.status()
        return { ...now, qr: now.qr ? await library.toDataURL(now.qr) : null }
      }
    },
    {
      name: 'logout', title: 'Sign Out', description: 'Removes this machine from the linked devices of the phone, and everything that is kept here.', inputSchema: object({}), annotations: { readOnlyHint: false, destructiveHint: true },
      run: async () => {
        if (!(await session.logout())) throw new ToolError('the session is removed here, but WhatsApp could not be told')
        return { state: 'logged_out' }
      }
    },
    {
      name: 'list_chats', title: 'List Chats', description: 'The chats that were seen since this machine was linked, newest first.', annotations: reads,
      inputSchema: object({ limit: number('How many at most.', 1, 200, 50) }),
      run: async ({ limit }) => { await need(); return { chats: store.listChats(limit) } }
    },
    {
      name: 'list_messages', title: 'Read Messages', description: 'The newest messages of one chat, oldest first. Messages from before this machine was linked are there only as far as the phone sent them.', annotations: reads,
      inputSchema: object({ chat: chatText, limit: number('How many at most.', 1, 200, 30), before: text('Only messages before this time (ISO 8601).', 40) }, 'chat'),
      run: async ({ chat, limit, before }) => {
        await need()
        const until = before ? Date.parse(before) / 1000 : Infinity
        if (Number.isNaN(until)) throw new ToolError('"before" is no time')
        return { messages: store.listMessages(chatId(chat), limit, until) }
      }
    },
    {
      name: 'search_messages', title: 'Search Messages', description: 'Messages that hold all the words, newest first.', annotations: reads,
      inputSchema: object({ words: text('The words, without regard to case.', 200), chat: text('Only in this chat.', 100), limit: number('How many at most.', 1, 100, 30) }, 'words'),
      run: async ({ words, chat, limit }) => { await need(); return { messages: store.search(words, limit, chat ? chatId(chat) : undefined) } }
    },
    {
      name: 'send_message', title: 'Send Message', description: 'Sends a text.', annotations: sends,
      inputSchema: object({ chat: chatText, text: text('The text.', 65_536) }, 'chat', 'text'),
      run: async ({ chat, text: words }) => {
        const socket = await need()
        const jid = await target(socket, chat)
        return sent(jid, await socket.sendMessage(jid, { text: words }))
      }
    },
    {
      name: 'send_file', title: 'Send File', description: 'Sends a file of the folder for files: a picture, a film, a sound or a document.', annotations: sends,
      inputSchema: object({ chat: chatText, path: text('The file, as a path below the folder for files.', 1000), caption: text('A text that goes with it.', 1024) }, 'chat', 'path'),
      run: async ({ chat, path, caption }) => {
        const socket = await need()
        const jid = await target(socket, chat)
        const { data, name } = await folder.read(path)
        return sent(jid, await socket.sendMessage(jid, contentOf(name, data, caption)))
      }
    },
    {
      name: 'save_file', title: 'Save File', description: 'Saves the file of a message into the folder for files.', annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: true },
      inputSchema: object({ chat: chatText, id: text('The message, by its id.', 128) }, 'chat', 'id'),
      run: async ({ chat, id }) => {
        await need()
        const message = store.find(chatId(chat), id)
        if (!message) throw new ToolError('there is no such message')
        if (!message.media) throw new ToolError('that message has no file')
        return { saved: await folder.write(nameFor(message.media, message.kind, id), await library.download(message.media, message.kind)) }
      }
    }
  ]
}
