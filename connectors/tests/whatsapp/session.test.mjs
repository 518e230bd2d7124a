// When the session connects, waits and stops: the pure function as a table, and the Session on a clock of the test.

import assert from 'node:assert/strict'
import test from 'node:test'

import { begin, limits, pauses, report, Session, step } from '../../whatsapp/session.mjs'

const connecting = { ...begin, phase: 'connecting' }
const paired = { ...connecting, paired: true }
const scanning = { ...connecting, phase: 'need_scan', qr: 'A' }
const ready = { ...paired, phase: 'ready' }

test('step', async t => {
  for (const [name, from, event, phase, effects, more] of [
    ['start', begin, { type: 'start', paired: false }, 'connecting', [['connect']]],
    ['a code', connecting, { type: 'qr', qr: 'A' }, 'need_scan', [], { qr: 'A' }],
    ['another code', scanning, { type: 'qr', qr: 'B' }, 'need_scan', [], { qr: 'B' }],
    ['515 after the scan', scanning, { type: 'closed', code: 515 }, 'connecting', [['connect']], { restarts: 1, paired: true, qr: null }],
    ['515 without end', { ...paired, restarts: limits.restarts }, { type: 'closed', code: 515 }, 'connecting', [['retry', pauses.first]]],
    ['open', paired, { type: 'open', me: '391234' }, 'ready', [], { message: 'signed in as 391234', tries: 0, restarts: 0 }],
    ['401', ready, { type: 'closed', code: 401 }, 'logged_out', []],
    ['403', ready, { type: 'closed', code: 403 }, 'logged_out', []],
    ['408 in a session', ready, { type: 'closed', code: 408 }, 'connecting', [['retry', 1000]], { tries: 1 }],
    ['428', { ...paired, tries: 3 }, { type: 'closed', code: 428 }, 'connecting', [['retry', 8000]], { tries: 4 }],
    ['503 for a long time', { ...paired, tries: 16 }, { type: 'closed', code: 503 }, 'connecting', [['retry', pauses.last]], { tries: 16 }],
    ['no code of its own', ready, { type: 'closed', code: 0 }, 'connecting', [['retry', 1000]]],
    ['408 of a code that is looked at', scanning, { type: 'closed', code: 408, watched: true }, 'connecting', [['connect']]],
    ['408 of a code that nobody looks at', scanning, { type: 'closed', code: 408, watched: false }, 'idle', []],
    ['somebody looks again', { ...begin }, { type: 'watched' }, 'connecting', [['connect']]],
    ['looking does not reconnect', ready, { type: 'watched' }, 'ready', []],
    ['looking does not hurry a retry', paired, { type: 'watched' }, 'connecting', []],
    ['440', ready, { type: 'closed', code: 440 }, 'connecting', [['retry', pauses.replaced]], { replaced: 1 }],
    ['440 again and again', { ...ready, replaced: limits.replaced }, { type: 'closed', code: 440 }, 'given_up', []],
    ['405', connecting, { type: 'closed', code: 405 }, 'connecting', [['refresh']], { asked: true }],
    ['405 with the current version', { ...connecting, asked: true }, { type: 'closed', code: 405 }, 'connecting', [['retry', 1000]]],
    ['500', ready, { type: 'closed', code: 500 }, 'connecting', [['retry', 1000]], { bad: 1 }],
    ['500 for the third time', { ...paired, bad: 2 }, { type: 'closed', code: 500 }, 'logged_out', []],
    ['500, then another', { ...paired, bad: 2 }, { type: 'closed', code: 428 }, 'connecting', [['retry', 1000]], { bad: 0 }],
    ['retry', paired, { type: 'retry' }, 'connecting', [['connect']]],
    ['a retry that comes late', ready, { type: 'retry' }, 'ready', []],
    ['a retry after a logout', { ...begin, phase: 'logged_out' }, { type: 'retry' }, 'logged_out', []],
    ['logout', ready, { type: 'reset' }, 'idle', [['forget']], { paired: false }]
  ]) {
    await t.test(name, () => {
      const before = JSON.stringify(from)
      const [to, todo] = step(from, event)
      assert.equal(to.phase, phase)
      assert.deepEqual(todo, effects)
      for (const [key, value] of Object.entries(more ?? {})) assert.equal(to[key], value, key)
      assert.equal(JSON.stringify(from), before, 'the state that was given is changed')
    })
  }
})

test('what login_status says', () => {
  assert.deepEqual(report(scanning), { state: 'need_scan', qr: 'A', message: '' })
  assert.equal(report(begin).state, 'connecting')
  assert.equal(report({ ...begin, phase: 'given_up' }).state, 'connecting')
  assert.equal(report({ ...begin, phase: 'logged_out' }).state, 'logged_out')
  assert.equal(report(ready).state, 'ready')
})

/** A session with a fake service and a clock that the test moves. */
function scripted({ isPaired = false } = {}) {
  const it = { sockets: [], time: 0, timers: [], forgotten: 0, refreshed: 0, fails: 0 }
  it.session = new Session({
    connect: async ({ onUpdate }) => {
      if (it.fails-- > 0) throw new Error('no packages')
      const socket = { say: onUpdate, ended: false, end() { this.ended = true }, logout: async () => { if (it.deaf) throw new Error('no network'); it.told = true } }
      it.sockets.push(socket)
      return socket
    },
    forget: async () => { it.forgotten++ },
    refresh: async () => { it.refreshed++ },
    paired: async () => isPaired,
    now: () => it.time,
    after: (run, ms) => { const timer = { run, at: it.time + ms }; it.timers.push(timer); return timer },
    cancel: timer => { it.timers = it.timers.filter(x => x !== timer) },
    log: () => {}
  })
  it.last = () => it.sockets.at(-1)
  it.say = async update => { it.last().say(update); await settled() }
  it.pass = async ms => {
    it.time += ms
    for (const timer of it.timers.filter(x => x.at <= it.time)) {
      it.timers = it.timers.filter(x => x !== timer)
      timer.run()
    }
    await settled()
  }
  return it
}

const settled = async () => { for (let i = 0; i < 20; i++) await Promise.resolve() }

test('need_scan, ready, logged_out, and a new phone', async () => {
  const it = scripted()
  await it.session.start()
  await it.say({ qr: 'A' })
  assert.deepEqual((await it.session.status()).qr, 'A')
  await it.say({ qr: 'B' })
  assert.equal((await it.session.status()).qr, 'B')
  await it.say({ closed: 515 })
  assert.equal(it.sockets.length, 2)
  assert.equal(it.sockets[0].ended, true)
  await it.say({ open: '391234' })
  assert.equal((await it.session.status()).state, 'ready')
  assert.equal(await it.session.ready(), it.last())
  it.sockets[0].say({ closed: 401 }) // an older socket is not listened to
  await settled()
  assert.equal((await it.session.status()).state, 'ready')
  await it.say({ closed: 401 })
  assert.equal((await it.session.status()).state, 'logged_out')
  assert.equal(it.forgotten, 0)
  assert.equal(await it.session.logout(), true)
  assert.equal(it.forgotten, 1)
  assert.equal((await it.session.status()).state, 'connecting')
  assert.equal(it.sockets.length, 3)
})

test('logging out tells the service, and forgets also where it cannot', async () => {
  for (const deaf of [false, true]) {
    const it = scripted({ isPaired: true })
    it.deaf = deaf
    await it.session.start()
    await it.say({ open: '1' })
    assert.equal(await it.session.logout(), !deaf)
    assert.equal(it.forgotten, 1)
    assert.equal(it.last().ended, true)
  }
})

test('a connection that is lost is tried again, with longer pauses', async () => {
  const it = scripted({ isPaired: true })
  await it.session.start()
  for (const [n, wait] of [1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000].entries()) {
    await it.say({ closed: 408 })
    await it.pass(wait - 1)
    assert.equal(it.sockets.length, n + 1)
    await it.pass(1)
    assert.equal(it.sockets.length, n + 2)
  }
  await it.say({ open: '1' })
  await it.say({ closed: 428 })
  await it.pass(1000)
  assert.equal(it.sockets.length, 10)
})

test('codes are made anew only while somebody looks', async () => {
  const it = scripted()
  await it.session.start()
  await it.say({ qr: 'A' })
  await it.session.status()
  await it.say({ closed: 408 })
  assert.equal(it.sockets.length, 2)
  await it.say({ qr: 'B' })
  await it.pass(limits.watched)
  await it.say({ closed: 408 })
  assert.equal(it.sockets.length, 2)
  assert.equal((await it.session.status()).state, 'connecting')
  assert.equal(it.sockets.length, 3)
})

test('packages that are missing and a version that is too old', async () => {
  const it = scripted()
  it.fails = 2
  await it.session.start()
  await settled()
  await it.pass(1000)
  await it.pass(2000)
  assert.equal(it.sockets.length, 1)
  await it.say({ closed: 405 })
  assert.equal(it.refreshed, 1)
  assert.equal(it.sockets.length, 2)
})

test('waiting for a session that is connecting', async () => {
  const it = scripted({ isPaired: true })
  await it.session.start()
  const waited = it.session.ready(5000)
  await it.say({ open: '1' })
  assert.equal(await waited, it.last())
  await it.say({ closed: 408 })
  const late = it.session.ready(500)
  await it.pass(500)
  assert.equal(await late, null)
  const fresh = scripted()
  await fresh.session.start()
  assert.equal(await fresh.session.ready(), null) // nobody is signed in: nothing to wait for
})

test('after stop nothing connects', async () => {
  const it = scripted({ isPaired: true })
  await it.session.start()
  await it.say({ closed: 408 })
  it.session.stop()
  await it.pass(60_000)
  assert.equal(it.sockets.length, 1)
  assert.equal(it.timers.length, 0)
})
