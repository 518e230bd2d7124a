// The tools, the store, the folder and the wire, against a service that is a few lines here.

import assert from 'node:assert/strict'
import { promises as fs } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { Readable } from 'node:stream'
import test from 'node:test'

import { contentOf, Folder, nameFor } from '../../whatsapp/files.mjs'
import { checked, Server } from '../../whatsapp/mcp_stdio.mjs'
import { read } from '../../whatsapp/message.mjs'
import { bounds, Store } from '../../whatsapp/store.mjs'
import { chatId, tools } from '../../whatsapp/tools.mjs'

const ada = '391111111111@s.whatsapp.net'
const group = '12345-67890@g.us'
const temp = t => fs.mkdtemp(path.join(os.tmpdir(), 'whatsapp-')).then(dir => { t.after(() => fs.rm(dir, { recursive: true, force: true })); return dir })
const raw = (id, message, more = {}) => ({ key: { id, remoteJid: ada, fromMe: false, ...more.key }, messageTimestamp: more.at ?? 1_700_000_000, message })
const still = { after: () => 1, cancel: () => {}, log: () => {} }

test('messages of the service', () => {
  assert.deepEqual(read(raw('1', { conversation: 'hello' })), { id: '1', chat: ada, from: ada, me: false, at: 1_700_000_000, text: 'hello', kind: 'text' })
  assert.equal(read(raw('2', { ephemeralMessage: { message: { extendedTextMessage: { text: 'gone soon' } } } })).text, 'gone soon')
  assert.equal(read(raw('3', { conversation: 'x' }, { key: { remoteJid: group, participant: ada } })).from, ada)
  const file = read(raw('4', { documentMessage: { fileName: 'a.pdf', mimetype: 'application/pdf', fileLength: { low: 7 }, mediaKey: new Uint8Array([1, 2]), directPath: '/v', caption: 'see' } }))
  assert.deepEqual([file.kind, file.text, file.media.name, file.media.size, file.media.key], ['document', 'see', 'a.pdf', 7, 'AQI='])
  assert.equal(read(raw('5', { reactionMessage: { text: '👍' } })).kind, 'reaction')
  for (const nothing of [null, {}, raw('6', null), raw('7', { protocolMessage: {} }), raw('8', { conversation: 'x' }, { key: { remoteJid: 'status@broadcast' } }), raw('9', { conversation: '' })]) assert.equal(read(nothing), null)
})

test('the store is bounded', () => {
  const store = new Store('/nowhere', still)
  for (let i = 0; i < bounds.perChat + 50; i++) store.add({ id: `m${i}`, chat: ada, from: ada, at: i + 1, text: 'x'.repeat(5000), kind: 'text' })
  assert.equal(store.chats.get(ada).messages.size, bounds.perChat)
  assert.equal(store.find(ada, 'm0'), undefined)
  assert.equal(store.find(ada, 'm249').text.length, bounds.text)
  assert.equal(store.add({ id: 'm249', chat: ada, from: ada, at: 250, text: 'again', kind: 'text' }), false)
  for (let i = 0; i < bounds.chats + 20; i++) store.chat(`${i}@g.us`, { at: 1000 + i })
  assert.equal(store.chats.size, bounds.chats)
  assert.equal(store.chats.has(ada), false)
  assert.equal(store.count, 0)
})

test('the store is kept, and a damaged one is put aside', async t => {
  const file = path.join(await temp(t), 'state', 'messages.json')
  const one = new Store(file, still)
  one.name(ada, 'Ada')
  one.add({ id: '1', chat: ada, from: ada, me: false, at: 5, text: 'Grüße', kind: 'text' })
  await one.save()
  assert.equal((await fs.stat(file)).mode & 0o777, 0o600)
  const two = new Store(file, still)
  await two.load()
  assert.deepEqual(two.listMessages(ada, 10), [{ id: '1', chat: ada, chat_name: 'Ada', from: ada, at: '1970-01-01T00:00:05.000Z', text: 'Grüße', kind: 'text', from_name: 'Ada' }])
  assert.deepEqual(two.search('grüße', 5).map(m => m.id), ['1'])
  assert.deepEqual(two.search('grüße nothing', 5), [])
  await fs.writeFile(file, '{"format":1,"names":[')
  const three = new Store(file, still)
  await three.load()
  assert.equal(three.chats.size, 0)
  assert.ok(await fs.stat(`${file}.damaged`))
  await two.forget()
  assert.deepEqual(await fs.readdir(path.dirname(file)), ['messages.json.damaged'])
})

test('the folder for files', async t => {
  const dir = await temp(t)
  const folder = new Folder(path.join(dir, 'in'))
  await fs.mkdir(path.join(dir, 'in', 'sub'), { recursive: true })
  await fs.writeFile(path.join(dir, 'secret'), 'no')
  await fs.writeFile(path.join(dir, 'in', 'sub', 'a.txt'), 'yes')
  await fs.symlink(path.join(dir, 'secret'), path.join(dir, 'in', 'link'))
  await fs.symlink(dir, path.join(dir, 'in', 'out'))
  assert.equal(String((await folder.read('sub/a.txt')).data), 'yes')
  for (const name of ['../secret', path.join(dir, 'secret'), 'link', 'out/secret', 'sub', '', '.', 'missing']) await assert.rejects(folder.read(name), name)
  assert.equal(path.basename(await folder.write('../../x:y.txt', 'data')), 'x_y.txt')
  assert.equal(path.basename(await folder.write('x_y.txt', 'data')), 'x_y-1.txt')
  assert.equal(path.basename(await folder.write('...', 'data')), 'file')
  await assert.rejects(new Folder('').read('a'), /no folder for files is set/)
  assert.equal(contentOf('a.JPG', Buffer.from('x'), 'c').mimetype, 'image/jpeg')
  assert.equal(contentOf('a.bin', Buffer.from('x')).fileName, 'a.bin')
  assert.equal(nameFor({ name: '', type: 'image/jpeg; x' }, 'image', 'ABCDEF'), 'image-ABCDEF.jpg')
})

/** The tools on a session that is ready, or not. */
async function setUp(t, phase = 'ready') {
  const dir = await temp(t)
  const sent = []
  const socket = {
    onWhatsApp: async jid => [{ jid, exists: jid.startsWith('39') }],
    sendMessage: async (jid, content) => { sent.push([jid, content]); return raw(`S${sent.length}`, { conversation: content.text ?? 'file' }, { key: { remoteJid: jid, fromMe: true } }) }
  }
  const session = { state: { phase, message: '' }, ready: async () => (phase === 'ready' ? socket : null), status: async () => ({ state: phase, qr: phase === 'need_scan' ? 'CODE' : null, message: '' }), logout: async () => phase === 'ready' }
  const store = new Store(path.join(dir, 'm.json'), still)
  const library = { toDataURL: async x => `data:image/png;base64,${x}`, download: async () => Buffer.from('bytes') }
  const list = tools({ session, store, folder: new Folder(dir), library })
  const call = async (name, args = {}) => { const tool = list.find(x => x.name === name); return tool.run(checked(tool, args)) }
  return { dir, sent, store, list, call }
}

test('tools of a session that is ready', async t => {
  const { dir, sent, store, call } = await setUp(t)
  assert.equal((await call('send_message', { chat: '+39 111 111-1111', text: 'hi' })).chat, '391111111111@s.whatsapp.net')
  assert.deepEqual(sent[0], ['391111111111@s.whatsapp.net', { text: 'hi' }])
  await assert.rejects(call('send_message', { chat: '+44 20 7946 0000', text: 'hi' }), /nobody on WhatsApp has the number 442079460000/)
  await assert.rejects(call('send_message', { chat: 'Ada', text: 'hi' }), /is no chat/)
  await assert.rejects(call('send_message', { chat: ada, text: '  ' }), /"text" is empty/)
  await assert.rejects(call('send_message', { chat: ada, text: 'x', hidden: 1 }), /no argument "hidden"/)
  await fs.writeFile(path.join(dir, 'a.pdf'), 'pdf')
  await call('send_file', { chat: ada, path: 'a.pdf', caption: 'see' })
  assert.equal(sent[1][1].mimetype, 'application/pdf')
  store.add({ ...read(raw('F', { imageMessage: { mimetype: 'image/png', mediaKey: new Uint8Array(1) } })) })
  assert.equal(await fs.readFile((await call('save_file', { chat: ada, id: 'F' })).saved, 'utf8'), 'bytes')
  await assert.rejects(call('save_file', { chat: ada, id: 'S1' }), /that message has no file/)
  assert.equal((await call('list_chats')).chats.length, 1)
  assert.ok((await call('list_messages', { chat: ada })).messages.length >= 3)
  await assert.rejects(call('list_messages', { chat: ada, before: 'soon' }), /"before" is no time/)
  assert.equal((await call('search_messages', { words: 'HI' })).messages[0].id, 'S1')
})

test('tools of a session that is not', async t => {
  for (const [phase, says] of [['need_scan', /nobody is signed in/], ['logged_out', /nobody is signed in/], ['connecting', /not connected/], ['given_up', /not connected/]]) {
    const { list, call } = await setUp(t, phase)
    for (const tool of list.slice(2)) {
      const args = Object.fromEntries((tool.inputSchema.required ?? []).map(name => [name, name === 'chat' ? ada : 'x']))
      await assert.rejects(call(tool.name, args), says, tool.name)
    }
  }
  const { call } = await setUp(t, 'need_scan')
  assert.equal((await call('login_status')).qr, 'data:image/png;base64,CODE')
  await assert.rejects(call('logout'), /could not be told/)
})

test('every tool has a title, a schema and annotations', async t => {
  const { list } = await setUp(t)
  for (const tool of list) assert.ok(tool.title && tool.description && tool.inputSchema.type === 'object' && tool.annotations, tool.name)
  assert.equal(chatId(group), group)
})

test('the wire', async () => {
  const out = []
  const serve = async (...lines) => {
    out.length = 0
    const slow = { name: 'echo', title: 'Echo', description: 'x', inputSchema: { type: 'object', properties: { text: { type: 'string' } } }, run: async args => args }
    const broken = { name: 'broken', title: 'B', description: 'x', inputSchema: { type: 'object' }, run: async () => { throw new Error('boom') } }
    const server = new Server({ name: 'w', version: '1', tools: [slow, broken], input: Readable.from(lines.map(l => Buffer.from(l))), output: { write: line => out.push(JSON.parse(line)) }, log: () => {} })
    await server.serve()
    await new Promise(resolve => setImmediate(resolve))
    return out
  }
  assert.equal((await serve('{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}\n'))[0].result.protocolVersion, '2025-06-18')
  assert.equal((await serve('{"jsonrpc":"2.0","id":1,"met', 'hod":"ping"}\r\n\n'))[0].id, 1)
  assert.deepEqual(await serve('{"jsonrpc":"2.0","method":"notifications/initialized"}\n', '{"jsonrpc":"2.0","id":9,"result":{}}\n'), [])
  assert.equal((await serve('nonsense\n'))[0].error.code, -32700)
  assert.equal((await serve('[]\n'))[0].error.code, -32600)
  assert.equal((await serve('{"id":1.5,"method":"ping"}\n'))[0].error.code, -32600)
  assert.equal((await serve('{"id":1,"method":"x"}\n'))[0].error.code, -32601)
  assert.equal((await serve('{"id":1,"method":"tools/call","params":{"name":"none"}}\n'))[0].error.code, -32602)
  assert.deepEqual((await serve('{"id":"a","method":"tools/call","params":{"name":"echo","arguments":{"text":"ä"}}}\n'))[0].result.structuredContent, { text: 'ä' })
  assert.equal((await serve('{"id":2,"method":"tools/call","params":{"name":"broken"}}\n'))[0].result.isError, true)
  assert.equal((await serve('{"id":2,"method":"tools/call","params":{"name":"echo","arguments":[]}}\n'))[0].result.isError, true)
  assert.deepEqual(await serve('{"id":3,"method":"tools/call","params":{"name":"echo"}}\n{"method":"notifications/cancelled","params":{"requestId":3}}\n'), [])
  const huge = await serve('{"id":1,"method":"ping","x":"', 'y'.repeat(9 << 20), '"}\n', '{"id":2,"method":"ping"}\n')
  assert.deepEqual([huge[0].error.code, huge[1].id], [-32600, 2])
})
