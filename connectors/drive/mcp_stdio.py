"""A small MCP server over stdio: JSON-RPC 2.0, one message a line, nothing else on stdout.

The same file stands in each connector of this marketplace, because a connector is
installed by itself; a test keeps the copies equal. Rules:

- stdout belongs to the protocol. At the start it is moved to a private descriptor and
  descriptor 1 becomes stderr, so a stray print cannot break a line. A lock guards it.
- Log lines go to stderr, one line each, without control characters and without secrets.
- A notification is never answered. A request is answered exactly once, unless the
  client cancelled it.
- A tool that fails answers with a result (isError), never with a protocol error; an
  argument that does not fit the tool's schema is such a failure.
- Tools run one at a time in a thread of their own, so ping is answered while one runs.
- End of input ends the server after the waiting calls; SIGTERM and SIGINT end it at once.

Python 3.8 or later, standard library only.
"""

import json
import os
import queue
import re
import signal
import sys
import threading

PROTOCOL_VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")

MAX_LINE = 32 * 1024 * 1024  # bytes; a message with attachments in text form stays far below
MAX_WAITING = 64             # calls; more means a client that does not wait for answers
DRAIN_SECONDS = 20           # how long the waiting calls may take after the end of input
MAX_LOG_LINE = 2000          # characters

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
SERVER_BUSY = -32000


class ToolError(Exception):
    """A failure that is told to the caller of a tool as it is, in plain words."""


class RpcError(Exception):
    """A protocol error: code and message of a JSON-RPC error object."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


def as_text(value):
    """Return value as the text of a tool result: strings as they are, others as JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, indent=1, ensure_ascii=False)


def cut(text, limit):
    """Return text, at most limit characters of it, with a note when something was cut."""
    if len(text) <= limit:
        return text
    return text[:limit] + "\n[cut: %d of %d characters shown]" % (limit, len(text))


# ---------------------------------------------------------------- argument checks

_TYPES = {
    "string": lambda v: isinstance(v, str),
    "integer": lambda v: (isinstance(v, int) and not isinstance(v, bool))
    or (isinstance(v, float) and v.is_integer()),
    "number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
    "boolean": lambda v: isinstance(v, bool),
    "array": lambda v: isinstance(v, list),
    "object": lambda v: isinstance(v, dict),
}


def check(schema, value, name="arguments"):
    """Check value against the part of JSON Schema that the tools use; return it, with
    whole floats turned into integers. Raises ToolError that names the argument."""
    kind = schema.get("type")
    if kind and not _TYPES[kind](value):
        article = "an" if kind[0] in "aeiou" else "a"
        raise ToolError("%s must be %s %s" % (name, article, kind))
    if kind == "integer":
        value = int(value)
    if "enum" in schema and value not in schema["enum"]:
        raise ToolError("%s must be one of %s" % (name, ", ".join(map(str, schema["enum"]))))
    if kind in ("integer", "number"):
        _check_number(schema, value, name)
    elif kind == "string":
        _check_string(schema, value, name)
    elif kind == "array":
        return _check_array(schema, value, name)
    elif kind == "object":
        return _check_object(schema, value, name)
    return value


def _check_number(schema, value, name):
    if value != value or value in (float("inf"), float("-inf")):
        raise ToolError("%s must be a finite number" % name)
    if "minimum" in schema and value < schema["minimum"]:
        raise ToolError("%s must be at least %s" % (name, schema["minimum"]))
    if "maximum" in schema and value > schema["maximum"]:
        raise ToolError("%s must be at most %s" % (name, schema["maximum"]))


def _check_string(schema, value, name):
    if len(value) < schema.get("minLength", 0):
        raise ToolError("%s must not be empty" % name)
    if len(value) > schema.get("maxLength", MAX_LINE):
        raise ToolError("%s is longer than %d characters" % (name, schema["maxLength"]))
    # In JSON Schema $ is the very end; Python's would let a line end pass.
    if "pattern" in schema and not re.search(re.sub(r"\$$", r"\\Z", schema["pattern"]), value):
        raise ToolError("%s must match %s" % (name, schema["pattern"]))
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise ToolError("%s holds half of a surrogate pair" % name) from None


def _check_array(schema, value, name):
    if len(value) < schema.get("minItems", 0):
        raise ToolError("%s must not be empty" % name)
    if len(value) > schema.get("maxItems", MAX_LINE):
        raise ToolError("%s must have at most %d items" % (name, schema["maxItems"]))
    return [check(schema.get("items", {}), item, "%s[%d]" % (name, n)) for n, item in enumerate(value)]


def _check_object(schema, value, name):
    known = schema.get("properties", {})
    prefix = "" if name == "arguments" else name + "."
    out = {}
    for key, item in value.items():
        if key not in known:
            if schema.get("additionalProperties", True):
                out[key] = item
                continue
            raise ToolError("unknown argument %s; known are: %s"
                            % (json.dumps(prefix + key), ", ".join(known) or "none"))
        if item is None and key not in schema.get("required", ()):
            continue  # null for an optional argument means that it was left out
        out[key] = check(known[key], item, prefix + key)
    for key in schema.get("required", ()):
        if key not in value:
            raise ToolError("argument %s is missing" % json.dumps(prefix + key))
    return out


# ---------------------------------------------------------------- the server

class Server:
    """One MCP server on stdin and stdout.

    info is the serverInfo object; tools the list for tools/list; dispatch maps a tool's
    name to a function of its checked arguments (a dict) that returns a string or JSON
    data, or raises ToolError. secrets are values that no log line or answer may hold.
    """

    def __init__(self, info, tools, dispatch, instructions="", secrets=()):
        self.info = info
        self.tools = tools
        self.dispatch = dispatch
        self.instructions = instructions
        forms = {f for s in secrets if s for f in (s, json.dumps(s)[1:-1], json.dumps(s, ensure_ascii=False)[1:-1])}
        self.secrets = sorted(forms, key=len, reverse=True)
        self.initialized = threading.Event()  # set by notifications/initialized
        self.stopping = threading.Event()     # set once, when the server ends
        self._schemas = {tool["name"]: tool["inputSchema"] for tool in tools}
        self._calls = queue.Queue()
        self._state = threading.Lock()        # guards the two sets below
        self._waiting = set()
        self._cancelled = set()
        self._out_lock = threading.Lock()
        self._out = None

    # -- output

    def scrub(self, text, least=4):
        """Return text with every secret of at least that many characters replaced. What
        is shorter stands in ordinary text too often to be taken out of it."""
        for secret in self.secrets:
            if len(secret) >= least:
                text = text.replace(secret, "[redacted]")
        return text

    def log(self, text):
        """Write one line to stderr."""
        line = "".join(c if c.isprintable() else " " for c in self.scrub(text))[:MAX_LOG_LINE]
        try:
            os.write(2, ("%s: %s\n" % (self.info["name"], line)).encode("utf-8", "backslashreplace"))
        except OSError:
            pass  # nobody listens; the protocol goes on

    def send(self, message):
        """Write one message as one line."""
        data = json.dumps(message, separators=(",", ":")).encode("ascii") + b"\n"
        view = memoryview(data)
        try:
            with self._out_lock:
                while view:
                    view = view[os.write(self._out, view):]
        except OSError:
            os._exit(0)  # the client is gone; there is no one left to tell

    def notify(self, method, params):
        """Send a notification to the client."""
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    # -- input

    def run(self):
        """Serve until the input ends. Returns the exit code."""
        self._out = os.dup(1)
        os.dup2(2, 1)
        for name in ("SIGTERM", "SIGINT", "SIGHUP"):
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), self._on_signal)
        worker = threading.Thread(target=self._work, daemon=True)
        worker.start()
        stdin = sys.stdin.buffer
        while True:
            try:
                line = stdin.readline(MAX_LINE + 1)
            except OSError:
                break
            if not line:
                break
            if len(line) > MAX_LINE:
                while line and not line.endswith(b"\n"):
                    line = stdin.readline(1 << 20)
                self._fail(None, PARSE_ERROR, "a line may have at most %d bytes" % MAX_LINE)
                continue
            if line.strip():
                self._on_line(line)
        self._calls.put(None)
        worker.join(DRAIN_SECONDS)
        self.stopping.set()
        return 0

    def _on_signal(self, _number, _frame):
        self.stopping.set()
        self._out_lock.acquire(timeout=0.5)  # let a line that is being written be completed
        os._exit(0)

    def _on_line(self, line):
        try:
            message = json.loads(line.decode("utf-8-sig"), parse_constant=_no_constant)
        except (ValueError, RecursionError):
            self._fail(None, PARSE_ERROR, "this line is not JSON")
            return
        answer = self.handle_request(message)
        if answer is not None:
            self.send(answer)

    def _fail(self, ident, code, text):
        self.send({"jsonrpc": "2.0", "id": ident, "error": {"code": code, "message": self.scrub(text)}})

    def handle_request(self, message):
        """Return the answer to one message; None when it gets none, or gets it later."""
        if isinstance(message, list):
            return self._error(None, INVALID_REQUEST, "batches are not supported")
        if not isinstance(message, dict):
            return self._error(None, INVALID_REQUEST, "a message must be an object")
        method, ident = message.get("method"), message.get("id")
        if method is None and ("result" in message or "error" in message):
            return None  # an answer; this server asks nothing
        if "id" not in message:
            if isinstance(method, str):
                self._on_notification(method, message.get("params"))
                return None
            return self._error(None, INVALID_REQUEST, "a message needs a method")
        if isinstance(ident, bool) or not isinstance(ident, (str, int, float)):
            return self._error(None, INVALID_REQUEST, "id must be a string or a number")
        if message.get("jsonrpc") != "2.0":
            return self._error(ident, INVALID_REQUEST, 'jsonrpc must be "2.0"')
        if not isinstance(method, str):
            return self._error(ident, INVALID_REQUEST, "method must be a string")
        params = message.get("params", {})
        if not isinstance(params, dict):
            return self._error(ident, INVALID_PARAMS, "params must be an object")
        try:
            result = self._on_request(ident, method, params)
        except RpcError as e:
            return self._error(ident, e.code, str(e))
        return None if result is None else {"jsonrpc": "2.0", "id": ident, "result": result}

    def _error(self, ident, code, text):
        return {"jsonrpc": "2.0", "id": ident, "error": {"code": code, "message": self.scrub(text)}}

    def _on_request(self, ident, method, params):
        if method == "initialize":
            return self._initialize(params)
        if method == "ping":
            return {}
        if method == "tools/list":
            return {"tools": self.tools}
        if method == "tools/call":
            self._enqueue(ident, params)
            return None
        raise RpcError(METHOD_NOT_FOUND, "there is no method %s" % json.dumps(method[:100]))

    def _initialize(self, params):
        wanted = params.get("protocolVersion")
        version = wanted if wanted in PROTOCOL_VERSIONS else PROTOCOL_VERSIONS[0]
        result = {"protocolVersion": version, "capabilities": {"tools": {"listChanged": False}},
                  "serverInfo": self.info}
        if self.instructions:
            result["instructions"] = self.instructions
        return result

    def _on_notification(self, method, params):
        if method == "notifications/initialized":
            self.initialized.set()
        elif method == "notifications/cancelled" and isinstance(params, dict):
            ident = params.get("requestId")
            if isinstance(ident, (str, int, float)):
                with self._state:
                    if ident in self._waiting:
                        self._cancelled.add(ident)

    # -- tools

    def _enqueue(self, ident, params):
        name, arguments = params.get("name"), params.get("arguments")
        if not isinstance(name, str) or name not in self.dispatch:
            raise RpcError(INVALID_PARAMS, "there is no tool %s" % json.dumps(name)[:100])
        with self._state:
            if ident in self._waiting:
                raise RpcError(INVALID_REQUEST, "a request with this id is still running")
            if len(self._waiting) >= MAX_WAITING:
                raise RpcError(SERVER_BUSY, "%d calls are waiting already" % MAX_WAITING)
            self._waiting.add(ident)
        self._calls.put((ident, name, {} if arguments is None else arguments))

    def _work(self):
        while True:
            call = self._calls.get()
            if call is None:
                return
            ident, name, arguments = call
            with self._state:
                dropped = ident in self._cancelled
            result = None if dropped else self._call(name, arguments)
            with self._state:
                dropped = ident in self._cancelled
                self._waiting.discard(ident)
                self._cancelled.discard(ident)
            if not dropped:
                self.send({"jsonrpc": "2.0", "id": ident, "result": result})

    def _call(self, name, arguments):
        try:
            text, failed = as_text(self.dispatch[name](check(self._schemas[name], arguments))), False
        except ToolError as e:
            text, failed = str(e), True
        except Exception as e:  # a fault of ours: the caller hears of it, the session goes on
            self.log("%s: %s at %s" % (name, type(e).__name__, _place(e)))
            text, failed = "the connector failed inside (%s); its log says where" % type(e).__name__, True
        text = self.scrub(text, 4 if failed else 8)
        return {"content": [{"type": "text", "text": text}], "isError": failed}


def _no_constant(name):
    raise ValueError(name)  # NaN and Infinity are not JSON


def _place(error):
    trace = error.__traceback__
    while trace.tb_next:
        trace = trace.tb_next
    return "%s:%d" % (os.path.basename(trace.tb_frame.f_code.co_filename), trace.tb_lineno)
