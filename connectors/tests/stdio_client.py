"""A client for the tests: starts a connector's server as a process and speaks to it by lines."""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import unittest

TESTS = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(TESTS)
SECONDS = 120  # for one answer; it only ends a hang, and a loaded machine is slow


class Client:
    """One running server. Closed by close(); checks that stdout held JSON-RPC lines only."""

    def __init__(self, connector, script, env=None):
        clean = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "LANG", "SYSTEMROOT", "TMPDIR")}
        clean.update(env or {}, PYTHONDONTWRITEBYTECODE="1")
        self.process = subprocess.Popen([sys.executable, script], cwd=os.path.join(ROOT, connector), env=clean,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.lines, self.errors = queue.Queue(), []
        self.notifications = queue.Queue()
        self.raw = b""  # everything that was on stdout
        self._id = 0
        self._readers = [threading.Thread(target=self._read, daemon=True),
                         threading.Thread(target=self._read_errors, daemon=True)]
        for reader in self._readers:
            reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.raw += line
            message = json.loads(line.decode("ascii"))
            assert message["jsonrpc"] == "2.0", message
            (self.notifications if "id" not in message else self.lines).put(message)
        self.lines.put(None)

    def _read_errors(self):
        for line in self.process.stderr:
            self.errors.append(line.decode("utf-8", "replace"))

    def log(self):
        return "".join(self.errors)

    def write(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def receive(self, seconds=SECONDS):
        message = self.lines.get(timeout=seconds)
        if message is None:
            raise AssertionError("the server ended: " + self.log())
        return message

    def request(self, method, params=None, seconds=SECONDS):
        self._id += 1
        message = {"jsonrpc": "2.0", "id": self._id, "method": method}
        if params is not None:
            message["params"] = params
        self.write(json.dumps(message).encode() + b"\n")
        answer = self.receive(seconds)
        assert answer["id"] == self._id, answer
        return answer

    def notify(self, method, params=None):
        self.write(json.dumps({"jsonrpc": "2.0", "method": method, "params": params or {}}).encode() + b"\n")

    def handshake(self, version="2025-11-25"):
        result = self.request("initialize", {"protocolVersion": version, "capabilities": {},
                                             "clientInfo": {"name": "test", "version": "0"}})["result"]
        self.notify("notifications/initialized")
        return result

    def call(self, tool, seconds=SECONDS, **arguments):
        """Return (text, failed?) of a tool call."""
        arguments = {k.rstrip("_"): v for k, v in arguments.items()}
        result = self.request("tools/call", {"name": tool, "arguments": arguments}, seconds)["result"]
        assert [c["type"] for c in result["content"]] == ["text"], result
        return result["content"][0]["text"], result["isError"]

    def close(self):
        """End the input; return the exit code."""
        self.process.stdin.close()
        code = self.process.wait(SECONDS)
        for reader in self._readers:
            reader.join(SECONDS)
        self.process.stdout.close()
        self.process.stderr.close()
        return code


class ServerTest(unittest.TestCase):
    """Base of the suites. A subclass names its connector and script and may give an environment."""

    connector, script = "", ""

    def environment(self):
        return {}

    def start(self, env=None, version="2025-11-25"):
        client = Client(self.connector, self.script, self.environment() if env is None else env)
        self.addCleanup(self._end, client)
        client.hello = client.handshake(version)
        return client

    def _end(self, client):
        if client.process.poll() is None:
            client.process.kill()
            client.process.wait()
        for stream in (client.process.stdin, client.process.stdout, client.process.stderr):
            try:
                stream.close()
            except OSError:
                pass

    def ok(self, client, tool, **arguments):
        """Call a tool that must succeed; return its JSON data, or its text when it is not JSON."""
        text, failed = client.call(tool, **arguments)
        self.assertFalse(failed, text)
        try:
            return json.loads(text)
        except ValueError:
            return text

    def fails(self, client, tool, words, **arguments):
        """Call a tool that must fail with words in its message."""
        text, failed = client.call(tool, **arguments)
        self.assertTrue(failed, text)
        self.assertIn(words, text)
        return text

    def run_verify(self, env):
        """Run verify.py; return (exit code, result object, everything it printed)."""
        clean = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "LANG", "SYSTEMROOT", "TMPDIR")}
        clean.update(env, PYTHONDONTWRITEBYTECODE="1")
        done = subprocess.run([sys.executable, "verify.py"], cwd=os.path.join(ROOT, self.connector), env=clean,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=90)
        text = done.stdout.decode()
        self.assertEqual(text.count("\n"), 1, text)
        return done.returncode, json.loads(text), text + done.stderr.decode()


class ProtocolTests:
    """What every server must do; mixed into each suite."""

    def test_handshake_and_versions(self):
        for asked, given in (("2025-11-25", "2025-11-25"), ("2025-06-18", "2025-06-18"), ("2025-03-26", "2025-03-26"),
                             ("2024-11-05", "2024-11-05"), ("1999-01-01", "2025-11-25"), (None, "2025-11-25")):
            client = self.start(version=asked)
            self.assertEqual(client.hello["protocolVersion"], given)
            self.assertIn("tools", client.hello["capabilities"])
            self.assertEqual(client.hello["serverInfo"]["name"], self.connector)
            self.assertEqual(client.close(), 0)

    def test_tools_are_described(self):
        client = self.start()
        result = client.request("tools/list")["result"]
        self.assertIsInstance(result, dict)
        manifest = self.manifest()
        shown = [(t["name"], t["title"]) for t in result["tools"]]
        self.assertEqual(shown, [(t["name"], t["display_name"]) for t in manifest["tools"]])
        for tool in result["tools"]:
            schema = tool["inputSchema"]
            self.assertEqual(schema["type"], "object")
            self.assertIs(schema["additionalProperties"], False)
            self.assertLessEqual(set(schema["required"]), set(schema["properties"]))
            for name, field in schema["properties"].items():
                self.assertTrue(field.get("description"), "%s.%s" % (tool["name"], name))
            self.assertIn("readOnlyHint", tool["annotations"])
            self.assertTrue(tool["description"].endswith("."))

    def manifest(self):
        with open(os.path.join(ROOT, self.connector, "connector.json"), encoding="utf-8") as f:
            return json.load(f)

    def test_ping_and_unknown_method(self):
        client = self.start()
        self.assertEqual(client.request("ping")["result"], {})
        self.assertEqual(client.request("resources/list")["error"]["code"], -32601)
        self.assertEqual(client.request("tools/call", {"name": "nope"})["error"]["code"], -32602)
        self.assertEqual(client.request("tools/call", {"name": 7})["error"]["code"], -32602)

    def test_notifications_are_never_answered(self):
        client = self.start()
        for method in ("notifications/initialized", "notifications/cancelled", "no/such", "ping", "tools/list"):
            client.notify(method)
        client.write(b'{"jsonrpc":"2.0","id":77,"result":{}}\n')  # an answer to nothing
        self.assertEqual(client.request("ping")["result"], {})

    def test_malformed_lines(self):
        client = self.start()
        for line, code in ((b"{", -32700), (b"hello", -32700), (b"\xff\xfe", -32700), (b"[" * 100000, -32700),
                           (b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}', -32700),
                           (b"[]", -32600), (b"7", -32600), (b"null", -32600), (b'{"jsonrpc":"2.0"}', -32600),
                           (b'{"jsonrpc":"2.0","id":1}', -32600), (b'{"id":1,"method":"ping"}', -32600),
                           (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
                           (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600),
                           (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32602),
                           (b'{"jsonrpc":"2.0","id":1,"method":5}', -32600)):
            client.write(line + b"\n")
            self.assertEqual(client.receive()["error"]["code"], code, line[:80])
        client.write(b"\n\r\n  \n")
        client.write(b'\xef\xbb\xbf{"jsonrpc":"2.0","id":"x","method":"ping"}\r\n')
        self.assertEqual(client.receive(), {"jsonrpc": "2.0", "id": "x", "result": {}})

    def test_overlong_line_is_refused_and_the_session_goes_on(self):
        client = self.start()
        client.write(b'{"x":"' + b"y" * (33 << 20) + b'"}\n')
        self.assertEqual(client.receive()["error"]["code"], -32700)
        self.assertEqual(client.request("ping")["result"], {})

    def test_argument_checks(self):
        client = self.start()
        tool = client.request("tools/list")["result"]["tools"][-1]
        name, required = tool["name"], tool["inputSchema"]["required"]
        self.fails(client, name, 'unknown argument "nope"', nope=1)
        if required:
            self.fails(client, name, "is missing")
        answer = client.request("tools/call", {"name": name, "arguments": []})["result"]
        self.assertTrue(answer["isError"])
        self.assertIn("must be an object", answer["content"][0]["text"])

    def test_end_of_input_ends_cleanly_also_without_a_last_newline(self):
        client = self.start()
        client.write(b'{"jsonrpc":"2.0","id":9,"method":"ping"}')
        client.process.stdin.close()
        self.assertEqual(client.receive()["result"], {})
        self.assertEqual(client.process.wait(SECONDS), 0)
        self.assertNotIn("Traceback", client.log())

    @unittest.skipIf(os.name == "nt", "no SIGTERM here")
    def test_sigterm_ends_cleanly(self):
        client = self.start()
        client.process.send_signal(signal.SIGTERM)
        self.assertEqual(client.process.wait(SECONDS), 0)
        self.assertNotIn("Traceback", client.log())

    def test_client_that_stops_reading_stdout(self):
        env = dict(self.environment(), PATH=os.environ.get("PATH", ""), PYTHONDONTWRITEBYTECODE="1")
        read, write = os.pipe()
        process = subprocess.Popen([sys.executable, self.script], cwd=os.path.join(ROOT, self.connector), env=env,
                                   stdin=subprocess.PIPE, stdout=write, stderr=subprocess.PIPE)
        os.close(write)
        os.close(read)
        _, errors = process.communicate(b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n' * 20, SECONDS)
        self.assertEqual(process.returncode, 0)
        self.assertNotIn(b"Traceback", errors)
