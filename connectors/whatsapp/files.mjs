// The one folder that files are sent from and saved to. Nothing outside of it is read or written, and no link is followed.

import { constants, promises as fs } from 'node:fs'
import path from 'node:path'

import { ToolError } from './mcp_stdio.mjs'

export const largest = 64 << 20 // WhatsApp takes documents up to 2 GB; a tool's file is held in memory

export class Folder {
  constructor(dir) { this.dir = dir }

  #need() {
    if (!this.dir) throw new ToolError('no folder for files is set: configure the connector with one')
    return this.dir
  }

  /** Opens what lies at a path below the folder, through real folders only. */
  async #inside(name) {
    const root = await fs.realpath(this.#need()).catch(() => { throw new ToolError('the folder for files is not there') })
    const wanted = path.resolve(root, name)
    const below = path.relative(root, wanted)
    if (below === '' || below.startsWith('..') || path.isAbsolute(below)) throw new ToolError(`"${name}" is not in the folder for files`)
    const parent = await fs.realpath(path.dirname(wanted)).catch(() => { throw new ToolError(`"${name}" is not there`) })
    if (parent !== path.dirname(wanted)) throw new ToolError(`"${name}" leads through a link`)
    return wanted
  }

  async read(name) {
    const file = await this.#inside(name)
    let handle
    try {
      handle = await fs.open(file, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0))
    } catch (e) {
      throw new ToolError(e.code === 'ELOOP' ? `"${name}" is a link` : `"${name}" cannot be read (${e.code})`)
    }
    try {
      const info = await handle.stat()
      if (!info.isFile()) throw new ToolError(`"${name}" is no file`)
      if (info.size > largest) throw new ToolError(`"${name}" has more than ${largest >> 20} MiB`)
      return { data: await handle.readFile(), name: path.basename(file) }
    } finally {
      await handle.close()
    }
  }

  /** Writes a new file; a name that is taken gets a number. */
  async write(name, data) {
    const clean = path.basename(name).replace(/[\u0000-\u001f\u007f/\\:*?"<>|]/g, '_').replace(/^\.+/, '').replace(/[. ]+$/, '').slice(-120) || 'file'
    const { name: stem, ext } = path.parse(clean)
    for (let n = 0; n < 1000; n++) {
      const file = await this.#inside(n ? `${stem}-${n}${ext}` : clean)
      try {
        await fs.writeFile(file, data, { flag: 'wx', mode: 0o600 })
        return file
      } catch (e) {
        if (e.code !== 'EEXIST') {
          await fs.rm(file, { force: true }).catch(() => {})
          throw new ToolError(e.code === 'ENOSPC' ? 'the disk is full; nothing was saved' : `it cannot be saved (${e.code})`)
        }
      }
    }
    throw new ToolError('there are a thousand files of that name')
  }
}

const types = {
  jpg: 'image/jpeg', jpeg: 'image/jpeg', png: 'image/png', webp: 'image/webp', gif: 'image/gif', mp4: 'video/mp4', mov: 'video/quicktime', mp3: 'audio/mpeg',
  ogg: 'audio/ogg', m4a: 'audio/mp4', pdf: 'application/pdf', txt: 'text/plain', csv: 'text/csv', zip: 'application/zip',
  docx: 'application/vnd.openxmlformats-officedocument.wordprocessingml.document', xlsx: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet'
}

/** What Baileys is to send for a file: by its kind, so that a phone shows it as that. */
export function contentOf(name, data, caption) {
  const ext = path.extname(name).slice(1).toLowerCase()
  const mimetype = types[ext] ?? 'application/octet-stream'
  if (['jpg', 'jpeg', 'png'].includes(ext)) return { image: data, mimetype, caption }
  if (ext === 'mp4') return { video: data, mimetype, caption }
  if (mimetype.startsWith('audio/')) return { audio: data, mimetype }
  return { document: data, mimetype, fileName: name, caption }
}

const extensions = Object.fromEntries(Object.entries(types).reverse().map(([ext, type]) => [type, ext]))

/** A name for a file that has none. */
export function nameFor(media, kind, id) {
  if (media.name) return media.name
  return `${kind}-${id.slice(-12)}.${extensions[media.type.split(';')[0]] ?? 'bin'}`
}
