// What this connector keeps of a message of WhatsApp: its text, who and when, and the keys of a file in it.

const files = { imageMessage: 'image', videoMessage: 'video', audioMessage: 'audio', documentMessage: 'document', stickerMessage: 'sticker' }
const wrappers = ['ephemeralMessage', 'viewOnceMessage', 'viewOnceMessageV2', 'documentWithCaptionMessage', 'editedMessage']

/** Chats that are none: status posts, broadcasts, newsletters. */
export const isChat = jid => typeof jid === 'string' && /@(s\.whatsapp\.net|g\.us|lid)$/.test(jid) && jid.length < 100

const seconds = t => Number(typeof t === 'object' && t !== null ? (t.low ?? t) : t) || 0

/** message of Baileys → message of the store, null when there is nothing to keep. */
export function read(m) {
  const { key } = m ?? {}
  if (!key?.id || !isChat(key.remoteJid)) return null
  let body = m.message
  for (let i = 0; i < 4 && body; i++) {
    const inner = wrappers.find(w => body[w]?.message)
    if (!inner) break
    body = body[inner].message
  }
  if (!body) return null
  const out = { id: String(key.id).slice(0, 128), chat: key.remoteJid, from: key.participant || key.remoteJid, me: Boolean(key.fromMe), at: seconds(m.messageTimestamp), text: '', kind: 'text' }
  const found = Object.keys(files).find(k => body[k])
  if (found) {
    const f = body[found]
    out.kind = files[found]
    out.text = f.caption ?? ''
    out.media = {
      name: String(f.fileName ?? '').slice(0, 200), type: String(f.mimetype ?? '').slice(0, 100), size: seconds(f.fileLength),
      key: f.mediaKey ? Buffer.from(f.mediaKey).toString('base64') : '', path: String(f.directPath ?? ''), url: String(f.url ?? '')
    }
    return out
  }
  out.text = body.conversation ?? body.extendedTextMessage?.text ?? ''
  if (out.text) return out
  const other = { locationMessage: 'location', contactMessage: 'contact', reactionMessage: 'reaction', pollCreationMessage: 'poll', pollCreationMessageV3: 'poll' }
  const kind = Object.keys(other).find(k => body[k])
  if (!kind) return null
  out.kind = other[kind]
  out.text = { location: () => `${body[kind].degreesLatitude}, ${body[kind].degreesLongitude}`, contact: () => body[kind].displayName ?? '', reaction: () => body[kind].text ?? '', poll: () => body[kind].name ?? '' }[out.kind]()
  return out
}
