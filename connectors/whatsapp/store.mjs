// What the connector remembers of chats and messages, since the service keeps none for a linked device: bounded, in one
// file that is replaced whole, readable by its owner only.

import { promises as fs } from 'node:fs'
import path from 'node:path'

export const bounds = { chats: 500, perChat: 200, messages: 20_000, text: 4096, name: 200, file: 64 << 20 }

const saveAfter = 2000 // ms: a burst of messages is one write

export class Store {
  constructor(file, { after = setTimeout, cancel = clearTimeout, log = console.error } = {}) {
    Object.assign(this, { file, after, cancel, log })
    this.timer = null
    this.clear()
  }

  clear() {
    this.names = new Map() // jid → name of a contact or group
    this.chats = new Map() // jid → {unread, at, messages: Map(id → message)}
    this.count = 0
  }

  /** Reads the file; one that is damaged is put aside, not taken for an empty one. */
  async load() {
    let text
    try {
      if ((await fs.stat(this.file)).size > bounds.file) throw new SyntaxError('it is too large')
      text = await fs.readFile(this.file, 'utf8')
    } catch (e) {
      if (e.code === 'ENOENT') return
      if (!(e instanceof SyntaxError)) throw e
    }
    try {
      const data = JSON.parse(text)
      if (data.format !== 1) throw new SyntaxError(`its format is ${data.format}`)
      for (const [jid, name] of data.names) this.name(jid, name)
      for (const c of data.chats) {
        this.chat(c.jid, { unread: c.unread, at: c.at })
        for (const m of c.messages) this.add({ ...m, chat: c.jid })
      }
    } catch (e) {
      this.clear()
      await fs.rename(this.file, `${this.file}.damaged`)
      this.log(`whatsapp: ${this.file} cannot be read (${e.message}); it is kept beside, and a new one begun`)
    }
  }

  /** Writes soon. */
  touch() {
    this.timer ??= this.after(() => { this.timer = null; this.save().catch(e => this.log(`whatsapp: saving messages: ${e.message}`)) }, saveAfter)
  }

  async save() {
    if (this.timer) this.cancel(this.timer)
    this.timer = null
    const chats = [...this.chats].map(([jid, c]) => ({ jid, unread: c.unread, at: c.at, messages: [...c.messages.values()].map(({ chat, ...m }) => m) }))
    const temp = `${this.file}.tmp-${process.pid}`
    await fs.mkdir(path.dirname(this.file), { recursive: true, mode: 0o700 })
    try {
      const handle = await fs.open(temp, 'w', 0o600)
      try {
        await handle.writeFile(JSON.stringify({ format: 1, names: [...this.names], chats }))
        await handle.sync()
      } finally {
        await handle.close()
      }
      await fs.rename(temp, this.file)
    } catch (e) {
      await fs.rm(temp, { force: true })
      throw e
    }
  }

  async forget() {
    if (this.timer) this.cancel(this.timer)
    this.timer = null
    this.clear()
    await fs.rm(this.file, { force: true })
  }

  name(jid, name) {
    if (typeof name !== 'string' || name.trim() === '') return
    this.names.delete(jid)
    this.names.set(jid, name.slice(0, bounds.name))
    if (this.names.size > 10 * bounds.chats) this.names.delete(this.names.keys().next().value)
    this.touch()
  }

  nameOf(jid) { return this.names.get(jid) ?? jid.split('@')[0] }

  chat(jid, { unread, at, name } = {}) {
    let c = this.chats.get(jid)
    if (!c) {
      c = { unread: 0, at: Number.isFinite(at) ? at : 0, messages: new Map() }
      this.#dropOldest()
      this.chats.set(jid, c)
    }
    if (Number.isInteger(unread) && unread >= 0) c.unread = unread
    if (Number.isFinite(at)) c.at = Math.max(c.at, at)
    this.name(jid, name)
    this.touch()
    return c
  }

  #dropOldest() {
    if (this.chats.size < bounds.chats) return
    let oldest = null
    for (const [jid, c] of this.chats) if (oldest === null || c.at < this.chats.get(oldest).at) oldest = jid
    this.count -= this.chats.get(oldest).messages.size
    this.chats.delete(oldest)
  }

  /** message: {id, chat, from, me, at, text, kind, media?}; true when it was not known. */
  add(message) {
    const c = this.chat(message.chat, { at: message.at })
    const known = c.messages.has(message.id)
    c.messages.set(message.id, { ...message, text: String(message.text ?? '').slice(0, bounds.text) })
    if (known) return false
    this.count++
    if (c.messages.size > bounds.perChat) this.#dropFirst(c)
    while (this.count > bounds.messages) {
      let fullest = c
      for (const other of this.chats.values()) if (other.messages.size > fullest.messages.size) fullest = other
      this.#dropFirst(fullest)
    }
    this.touch()
    return true
  }

  #dropFirst(c) {
    let first = null
    for (const m of c.messages.values()) if (first === null || m.at < first.at) first = m
    c.messages.delete(first.id)
    this.count--
  }

  find(chat, id) { return this.chats.get(chat)?.messages.get(id) }

  /** Newest first. */
  listChats(limit) {
    return [...this.chats].sort((a, b) => b[1].at - a[1].at).slice(0, limit).map(([jid, c]) => ({
      chat: jid, name: this.nameOf(jid), group: jid.endsWith('@g.us'), unread: c.unread, last: iso(c.at)
    }))
  }

  /** The newest `limit` messages before a time (seconds), oldest first. */
  listMessages(chat, limit, before = Infinity) {
    const all = [...(this.chats.get(chat)?.messages.values() ?? [])].filter(m => m.at < before)
    return all.sort((a, b) => a.at - b.at).slice(-limit).map(m => this.show(m))
  }

  search(words, limit, chat) {
    const wanted = words.toLocaleLowerCase().split(/\s+/).filter(Boolean)
    const found = []
    for (const [jid, c] of this.chats) {
      if (chat && jid !== chat) continue
      for (const m of c.messages.values()) {
        const text = `${m.text} ${m.media?.name ?? ''}`.toLocaleLowerCase()
        if (wanted.every(w => text.includes(w))) found.push(m)
      }
    }
    return found.sort((a, b) => b.at - a.at).slice(0, limit).map(m => this.show(m))
  }

  show(m) {
    const out = { id: m.id, chat: m.chat, chat_name: this.nameOf(m.chat), from: m.me ? 'me' : m.from, at: iso(m.at), text: m.text, kind: m.kind }
    if (!m.me) out.from_name = this.nameOf(m.from)
    if (m.media) out.file = { name: m.media.name, type: m.media.type, size: m.media.size }
    return out
  }
}

const iso = at => (at > 0 ? new Date(at * 1000).toISOString() : null)
