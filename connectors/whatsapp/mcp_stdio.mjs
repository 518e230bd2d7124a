// The MCP server over standard input and output: one JSON-RPC message a line (MCP 2025-11-25, "stdio").
//
// - Standard output carries messages and nothing else; what a library prints goes to standard error.
// - A notification is never answered; a request is answered exactly once, unless it was cancelled.
// - Tools run side by side, at most `maxRunning` of them.

const versions = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05']
const maxLine = 8 << 20 // a request: a text to send, never a file
const maxRunning = 16

/** An error that the person or the model can do something about; its message is shown to them. */
export class ToolError extends Error {}

/** Nothing of a library's may reach standard output: some print there. */
export function keepStdoutClean() {
  for (const level of ['log', 'info', 'debug', 'warn', 'trace', 'dir', 'table']) console[level] = (...args) => console.error(...args)
}

/** tools: [{name, title, description, inputSchema, annotations, run(args) → object}] */
export class Server {
  constructor({ name, version, instructions, tools, input = process.stdin, output = process.stdout, log = console.error }) {
    Object.assign(this, { name, version, instructions, input, output, log })
    this.tools = new Map(tools.map(t => [t.name, t]))
    this.running = new Map() // id as JSON → cancelled flag
    this.initialized = false
    this.buffer = []
    this.size = 0
  }

  /** Serves until the input ends. */
  async serve() {
    for await (const chunk of this.input) this.#feed(chunk)
  }

  notify(method, params) {
    if (this.initialized) this.#write({ jsonrpc: '2.0', method, params })
  }

  #write(message) {
    this.output.write(JSON.stringify(message) + '\n')
  }

  #feed(chunk) {
    for (let from = 0; ;) {
      const end = chunk.indexOf(10, from)
      const part = chunk.subarray(from, end < 0 ? chunk.length : end)
      this.size += part.length
      if (this.size <= maxLine) this.buffer.push(part)
      if (end < 0) return
      const size = this.size
      const line = size <= maxLine ? Buffer.concat(this.buffer).toString('utf8') : ''
      this.buffer = []
      this.size = 0
      if (size > maxLine) this.#fail(null, -32600, `a message has more than ${maxLine >> 20} MiB`)
      else if (line.trim() !== '') this.#take(line)
      from = end + 1
    }
  }

  #fail(id, code, message) {
    this.#write({ jsonrpc: '2.0', id, error: { code, message } })
  }

  #take(line) {
    let msg
    try {
      msg = JSON.parse(line)
    } catch {
      return this.#fail(null, -32700, 'a line is not JSON')
    }
    if (msg === null || typeof msg !== 'object' || Array.isArray(msg) || typeof msg.method !== 'string') {
      if (msg && typeof msg === 'object' && ('result' in msg || 'error' in msg)) return undefined // an answer to nothing that we asked
      return this.#fail(null, -32600, 'a message is no request')
    }
    const params = msg.params && typeof msg.params === 'object' ? msg.params : {}
    if (!('id' in msg)) return this.#notified(msg.method, params)
    if (typeof msg.id !== 'string' && !Number.isInteger(msg.id)) return this.#fail(null, -32600, 'the id is no text or whole number')
    return this.#asked(msg.id, msg.method, params)
  }

  #notified(method, params) {
    if (method === 'notifications/initialized') this.initialized = true
    if (method === 'notifications/cancelled') {
      const call = this.running.get(JSON.stringify(params.requestId))
      if (call) call.cancelled = true
    }
  }

  #asked(id, method, params) {
    const answer = result => this.#write({ jsonrpc: '2.0', id, result })
    switch (method) {
      case 'initialize': {
        const result = {
          protocolVersion: versions.includes(params.protocolVersion) ? params.protocolVersion : versions[0],
          capabilities: { tools: {} },
          serverInfo: { name: this.name, version: this.version }
        }
        if (this.instructions) result.instructions = this.instructions
        return answer(result)
      }
      case 'ping':
        return answer({})
      case 'tools/list':
        return answer({ tools: [...this.tools.values()].map(({ run, ...definition }) => definition) })
      case 'tools/call':
        return this.#call(id, params)
    }
    return this.#fail(id, -32601, 'there is no such method')
  }

  async #call(id, params) {
    const tool = this.tools.get(params.name)
    const key = JSON.stringify(id)
    if (!tool) return this.#fail(id, -32602, 'there is no such tool')
    if (this.running.has(key)) return this.#fail(id, -32600, 'the id is in use')
    if (this.running.size >= maxRunning) return this.#fail(id, -32603, 'too many calls at a time')
    const call = { cancelled: false }
    this.running.set(key, call)
    let result
    try {
      const value = await tool.run(checked(tool, params.arguments ?? {}))
      result = { content: [{ type: 'text', text: JSON.stringify(value) }], structuredContent: value }
    } catch (e) {
      if (!(e instanceof ToolError)) this.log(`whatsapp: ${tool.name}: ${e?.stack ?? e}`)
      const text = e instanceof ToolError ? e.message : `it failed: ${String(e?.message ?? e).slice(0, 300)}`
      result = { content: [{ type: 'text', text }], isError: true }
    }
    this.running.delete(key)
    if (!call.cancelled) this.#write({ jsonrpc: '2.0', id, result })
  }
}

/** Holds arguments against the tool's schema, as far as our schemas go. */
export function checked(tool, args) {
  if (args === null || typeof args !== 'object' || Array.isArray(args)) throw new ToolError('the arguments are no object')
  const { properties = {}, required = [] } = tool.inputSchema
  for (const name of Object.keys(args)) {
    if (!Object.hasOwn(properties, name)) throw new ToolError(`there is no argument "${name.slice(0, 60)}"; there are: ${Object.keys(properties).join(', ') || 'none'}`)
  }
  const out = {}
  for (const [name, rule] of Object.entries(properties)) {
    const value = args[name] ?? rule.default
    if (value === undefined) {
      if (required.includes(name)) throw new ToolError(`the argument "${name}" is missing`)
      continue
    }
    if (rule.type === 'string') {
      if (typeof value !== 'string') throw new ToolError(`"${name}" is no text`)
      if (required.includes(name) && value.trim() === '') throw new ToolError(`"${name}" is empty`)
      if (rule.maxLength && value.length > rule.maxLength) throw new ToolError(`"${name}" has more than ${rule.maxLength} characters`)
    }
    if (rule.type === 'integer' && (!Number.isInteger(value) || value < rule.minimum || value > rule.maximum)) {
      throw new ToolError(`"${name}" is no whole number from ${rule.minimum} to ${rule.maximum}`)
    }
    out[name] = value
  }
  return out
}
