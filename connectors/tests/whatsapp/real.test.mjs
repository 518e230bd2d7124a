// The connector with its real packages, as far as they go without WhatsApp: the service only speaks to keys that its own
// certificate vouches for, so a local one can refuse, break off and talk nonsense, and no more. WHATSAPP_DIR names a copy
// of the connector with its packages installed.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { promises as fs } from 'node:fs'
import { createServer } from 'node:net'
import path from 'node:path'
import readline from 'node:readline'
import test from 'node:test'
import { pathToFileURL } from 'node:url'

const dir = process.env.WHATSAPP_DIR
const options = { skip: dir ? false : 'WHATSAPP_DIR names no copy with packages' }
const inside = name => import(pathToFileURL(path.join(dir, 'node_modules', name)))

test('the packages have what the connector uses', options, async () => {
  const baileys = await inside('@whiskeysockets/baileys/lib/index.js')
  for (const name of ['makeWASocket', 'useMultiFileAuthState', 'downloadContentFromMessage', 'fetchLatestWaWebVersion']) assert.equal(typeof baileys[name], 'function', name)
  assert.equal(baileys.Browsers.appropriate('Desktop').length, 3)
  const codes = { connectionClosed: 428, connectionLost: 408, connectionReplaced: 440, timedOut: 408, loggedOut: 401, badSession: 500, restartRequired: 515, multideviceMismatch: 411, forbidden: 403, unavailableService: 503 }
  for (const [name, code] of Object.entries(codes)) assert.equal(baileys.DisconnectReason[name], code, name)
  const { default: qrcode } = await inside('qrcode/lib/index.js')
  const url = await qrcode.toDataURL('2@x', { errorCorrectionLevel: 'L', margin: 4, scale: 6 })
  assert.ok(url.startsWith('data:image/png;base64,'))
})

/** The connector as a process, and a client of it. */
function start(t, url) {
  const child = spawn(process.execPath, ['whatsapp_mcp_server.mjs'], { cwd: dir, env: { PATH: process.env.PATH, HOME: dir, WHATSAPP_URL: url } })
  t.after(() => child.kill('SIGKILL'))
  const waiting = new Map()
  const it = { child, errors: '', ended: new Promise(resolve => child.on('exit', code => resolve(code))) }
  child.stderr.on('data', d => { it.errors += d })
  readline.createInterface({ input: child.stdout }).on('line', line => {
    const msg = JSON.parse(line) // standard output is for messages only
    waiting.get(msg.id)?.(msg.result)
  })
  let id = 0
  it.ask = (method, params) => new Promise(resolve => {
    waiting.set(++id, resolve)
    child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`)
  })
  it.status = async () => (await it.ask('tools/call', { name: 'login_status' })).structuredContent
  it.until = async says => {
    for (;;) {
      const now = await it.status()
      if (says(now)) return now
      await new Promise(resolve => setTimeout(resolve, 100))
    }
  }
  return it
}

/** A server that accepts WebSockets and says what it is given; seen counts them. */
async function local(t, talk) {
  const it = { seen: 0 }
  const server = createServer(socket => {
    socket.on('error', () => {})
    socket.once('data', head => {
      const key = /sec-websocket-key: *(.+)\r/i.exec(String(head))?.[1]
      const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
      socket.write(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`)
      it.seen++
      talk(socket)
    })
  })
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  it.url = `ws://127.0.0.1:${server.address().port}/ws/chat`
  return it
}

for (const [name, talk] of [
  ['breaks off', socket => socket.destroy()],
  ['talks nonsense', socket => { socket.write(Buffer.from([0x82, 5, 0, 0, 2, 1, 2])); setTimeout(() => socket.destroy(), 200) }]
]) {
  test(`a service that ${name}: it answers, tries again, and ends with its input`, { ...options, timeout: 120_000 }, async t => {
    const service = await local(t, talk)
    const it = start(t, service.url)
    assert.equal((await it.ask('initialize', { protocolVersion: '2025-11-25' })).serverInfo.name, 'whatsapp')
    assert.equal((await it.ask('tools/list', {})).tools.length, 8)
    const now = await it.until(s => s.message.startsWith('not connected'))
    assert.equal(now.state, 'connecting')
    assert.equal(now.qr, null)
    await it.until(() => service.seen >= 2)
    assert.match((await it.ask('tools/call', { name: 'list_chats' })).content[0].text, /not connected/)
    it.child.stdin.end()
    assert.equal(await it.ended, 0)
    for (const folder of ['auth', 'state']) {
      for (const file of await fs.readdir(path.join(dir, folder))) assert.equal((await fs.stat(path.join(dir, folder, file))).mode & 0o077, 0, file)
    }
  })
}
