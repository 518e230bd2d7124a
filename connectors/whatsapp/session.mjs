// The session with WhatsApp: when to connect, when to wait, when to stop. What decides is one pure function, step; the
// Session around it carries out what it says. Source of the codes: DisconnectReason of Baileys.
//
// - 515: the service wants a new connection, which follows every pairing: at once.
// - 401, 403, 411: the phone removed this machine, or the account is barred: logged out, and nothing more until `logout`
//   begins anew.
// - 440: another program uses the same session: it is not fought for. Three tries, a minute apart, then it is given up.
// - 405: this version of the protocol is too old: the current one is asked for once.
// - 408 while a code is shown: the codes have run out. New ones are asked for only while somebody looks at them.
// - Everything else: again after 1, 2, 4 … 60 s, for as long as the connector runs.

export const pauses = { first: 1000, last: 60_000, replaced: 60_000 }
export const limits = { restarts: 5, replaced: 3, bad: 3, watched: 30_000 }

/** The state at the start. phase: idle, connecting, need_scan, ready, logged_out, given_up. */
export const begin = Object.freeze({ phase: 'idle', qr: null, message: '', paired: false, tries: 0, restarts: 0, replaced: 0, bad: 0, asked: false })

const ended = {
  401: 'the phone has removed this machine from its linked devices',
  403: 'WhatsApp refuses this account',
  411: 'the phone does not allow linked devices'
}

/**
 * step(state, event) → [state, effects]
 * event: {type: 'start', paired} | {type: 'open', me} | {type: 'qr', qr} | {type: 'closed', code, watched} |
 *        {type: 'retry'} | {type: 'watched'} | {type: 'reset'}
 * effects: ['connect'] | ['retry', ms] | ['refresh'] (ask for the protocol's version, then connect) | ['forget']
 */
export function step(s, e) {
  switch (e.type) {
    case 'start':
      return [{ ...begin, paired: e.paired, phase: 'connecting' }, [['connect']]]
    case 'open':
      return [{ ...begin, paired: true, phase: 'ready', message: e.me ? `signed in as ${e.me}` : 'signed in' }, []]
    case 'qr':
      return [{ ...s, phase: 'need_scan', qr: e.qr, tries: 0, message: 'On your phone: WhatsApp, Settings, Linked devices, Link a device' }, []]
    case 'retry':
      return s.phase === 'connecting' ? [s, [['connect']]] : [s, []]
    case 'watched': // somebody asks for the status
      return s.phase === 'idle' ? [{ ...s, phase: 'connecting' }, [['connect']]] : [s, []]
    case 'reset': // logout: begin anew when somebody asks
      return [{ ...begin }, [['forget']]]
    case 'closed':
      return closed(s, e)
  }
  return [s, []]
}

function closed(s, { code, watched }) {
  const next = { ...s, phase: 'connecting', qr: null }
  if (code === 515 && s.restarts < limits.restarts) {
    return [{ ...next, restarts: s.restarts + 1, paired: true, message: 'starting the new session' }, [['connect']]]
  }
  if (code in ended) return [{ ...next, phase: 'logged_out', message: ended[code] }, []]
  if (code === 440) {
    if (s.replaced >= limits.replaced) return [{ ...next, phase: 'given_up', message: 'another program uses this session; end it and start this connector again' }, []]
    return [{ ...next, replaced: s.replaced + 1, message: 'another program took this session over' }, [['retry', pauses.replaced]]]
  }
  if (code === 405 && !s.asked) return [{ ...next, asked: true, message: 'asking for the current version of the protocol' }, [['refresh']]]
  if (code === 500 && s.bad + 1 >= limits.bad) return [{ ...next, phase: 'logged_out', message: 'WhatsApp does not accept this session any more' }, []]
  if (code === 408 && s.phase === 'need_scan') {
    return watched ? [next, [['connect']]] : [{ ...next, phase: 'idle', message: 'the code has run out' }, []]
  }
  const wait = Math.min(pauses.first * 2 ** s.tries, pauses.last)
  const bad = code === 500 ? s.bad + 1 : 0
  return [{ ...next, bad, tries: Math.min(s.tries + 1, 16), message: `not connected (${code || 'no answer'}); trying again in ${wait / 1000} s` }, [['retry', wait]]]
}

/** What login_status says. */
export function report(s) {
  const state = { idle: 'connecting', given_up: 'connecting' }[s.phase] ?? s.phase
  return { state, qr: s.qr, message: s.message }
}

/**
 * connect({onUpdate}) → {end(), logout()}: makes a socket; onUpdate is given {qr} | {open: me} | {closed: code}.
 * forget() removes the stored session; refresh() asks for the version.
 */
export class Session {
  constructor({ connect, forget, refresh, paired, now = Date.now, after = setTimeout, cancel = clearTimeout, log = console.error }) {
    Object.assign(this, { connect, forget, refresh, paired, now, after, cancel, log })
    this.state = begin
    this.socket = null
    this.round = 0 // tells the updates of an older socket
    this.timer = null
    this.seen = -Infinity
    this.waiting = []
    this.stopped = false
  }

  async start() {
    await this.happen({ type: 'start', paired: await this.paired() })
  }

  /** login_status: asking is what keeps new codes coming. */
  async status() {
    this.seen = this.now()
    await this.happen({ type: 'watched' })
    return report(this.state)
  }

  /** The socket of a session that is ready, waited for at most `limit` ms; null when there is none. */
  async ready(limit = 20_000) {
    if (this.state.phase === 'connecting' && this.state.paired) {
      await new Promise(resolve => {
        const timer = this.after(resolve, limit)
        this.waiting.push(() => { this.cancel(timer); resolve() })
      })
    }
    return this.state.phase === 'ready' ? this.socket : null
  }

  /** Signs out. told tells whether the service knows. */
  async logout() {
    const socket = await this.ready(10_000)
    let told = !this.state.paired || this.state.phase === 'logged_out'
    if (socket) {
      this.round++ // the close that follows is ours
      try {
        await socket.logout()
        told = true
      } catch (e) {
        this.log(`whatsapp: signing out: ${e?.message ?? e}`)
      }
    }
    this.#drop()
    await this.happen({ type: 'reset' })
    return told
  }

  stop() {
    this.stopped = true
    if (this.timer) this.cancel(this.timer)
    this.#drop()
  }

  #drop() {
    this.round++
    const old = this.socket
    this.socket = null
    try { old?.end() } catch { /* it has ended */ }
  }

  async happen(event) {
    if (this.stopped) return
    let effects
    ;[this.state, effects] = step(this.state, event)
    if (this.state.phase !== 'connecting') {
      for (const wake of this.waiting.splice(0)) wake()
    }
    for (const [what, ms] of effects) {
      if (what === 'retry') {
        if (this.timer) this.cancel(this.timer)
        this.timer = this.after(() => { this.timer = null; this.happen({ type: 'retry' }).catch(e => this.log(`whatsapp: ${e?.message ?? e}`)) }, ms)
      }
      if (what === 'forget') await this.forget()
      if (what === 'refresh') {
        try { await this.refresh() } catch (e) { this.log(`whatsapp: asking for the protocol's version: ${e?.message ?? e}`) }
      }
      if (what === 'connect' || what === 'refresh') await this.#connect()
    }
  }

  async #connect() {
    this.#drop()
    const round = ++this.round
    const onUpdate = update => {
      if (round !== this.round || this.stopped) return
      let event = null
      if ('closed' in update) event = { type: 'closed', code: update.closed, watched: this.now() - this.seen < limits.watched }
      else if ('open' in update) event = { type: 'open', me: update.open }
      else if (update.qr) event = { type: 'qr', qr: update.qr }
      if (event) this.happen(event).catch(e => this.log(`whatsapp: ${e?.message ?? e}`))
    }
    try {
      const socket = await this.connect({ onUpdate })
      if (round !== this.round || this.stopped) return void socket.end()
      this.socket = socket
    } catch (e) {
      this.log(`whatsapp: connecting: ${e?.message ?? e}`)
      onUpdate({ closed: 0 })
    }
  }
}
