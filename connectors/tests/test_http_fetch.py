"""The http-fetch connector against pages on loopback."""

import gzip
import json
import os
import socket
import sys
import threading
import time
import unittest

from loopback import Site, page
from stdio_client import ROOT, ProtocolTests, ServerTest

HTML = """<!doctype html><html><head><title>Tea &amp; cake</title><style>p{}</style></head><body>
<nav><a href="/nav">Menu</a></nav><h1>Tea</h1><p>A <b>warm</b> <a href="cup?x=1">cup</a>.</p>
<ul><li>green<ul><li>sencha</li></ul></li><li>black</li></ul><pre>a  b
 c</pre><table><tr><th>Leaf</th><th>Minutes</th></tr><tr><td>oolong</td><td>3</td></tr></table>
<script>alert(1)</script><a href="javascript:alert(1)">bad</a></body></html>"""

MARKDOWN = """# Tea

A **warm** [cup](%s/dir/cup?x=1).

- green
  - sencha
- black

```
a  b
 c
```

| Leaf | Minutes |
| --- | --- |
| oolong | 3 |

bad"""


def dribble(_query):
    def body():
        while True:
            yield b"x"
            time.sleep(0.05)
    return 200, {"Content-Type": "text/plain"}, body()


class HttpFetch(ProtocolTests, ServerTest):
    connector, script = "http-fetch", "http_fetch_mcp_server.py"

    @classmethod
    def setUpClass(cls):
        cls.site = Site({
            "/dir/page": page(HTML), "/json": page('{"b":1,"a":[1,2]}', "application/json"),
            "/bad.json": page("<html>login</html>", "text/html"), "/plain": page("grüße\n" * 10, "text/plain; charset=latin-1"),
            "/latin": page("grüße".encode("latin-1"), "text/plain"), "/meta": page(b"<meta charset=iso-8859-15><p>\xa4</p>", "text/html"),
            "/image": page(b"\x89PNG\0", "image/png"), "/untyped": page("<html><p>hi", ""), "/big": page("y" * 3000000, "text/plain"),
            "/gzip": page(gzip.compress(b"packed"), "text/plain", Content_Encoding="gzip"),
            "/bomb": page(gzip.compress(b"0" * 50000000), "text/plain", Content_Encoding="gzip"),
            "/brotli": page(b"??", "text/plain", Content_Encoding="br"),
            "/gone": page("<p>It is <b>gone</b>", status=410), "/empty": page(b"", "text/html"),
            "/hop": page("", status=302, Location="/dir/page"), "/loop": page("", status=302, Location="/loop"),
            "/out": page("", status=302, Location="http://169.254.169.254/latest/"),
            "/scheme": page("", status=302, Location="file:///etc/passwd"), "/slow": dribble,
        })

    @classmethod
    def tearDownClass(cls):
        cls.site.close()

    def environment(self):
        return {"HTTP_FETCH_ALLOW_PRIVATE": "true"}

    def test_markdown(self):
        text, failed = self.start().call("fetch_url", url=self.site.url + "/dir/page")
        self.assertFalse(failed)
        head, _, body = text.partition("\n\n")
        self.assertEqual(head, "URL: %s/dir/page\nType: text/html\nTitle: Tea & cake" % self.site.url)
        self.assertEqual(body, MARKDOWN % self.site.url)

    def test_other_formats(self):
        client = self.start()
        text, _ = client.call("fetch_url", url=self.site.url + "/dir/page", format="text")
        self.assertIn("A warm cup.", text)
        self.assertNotIn("alert", text)
        self.assertIn("<script>alert(1)</script>", client.call("fetch_url", url=self.site.url + "/dir/page", format="raw")[0])
        text, _ = client.call("fetch_url", url=self.site.url + "/json", format="json")
        self.assertEqual(json.loads(text.partition("\n\n")[2]), {"b": 1, "a": [1, 2]})
        self.fails(client, "fetch_url", "not JSON: a web page", url=self.site.url + "/bad.json", format="json")

    def test_charsets(self):
        client = self.start()
        for path, words in (("/plain", "gr"), ("/latin", "grüße"), ("/meta", "€"), ("/untyped", "hi"), ("/gzip", "packed")):
            self.assertIn(words, client.call("fetch_url", url=self.site.url + path)[0], path)

    def test_failures(self):
        client = self.start()
        for path, words in (("/nothing", "404"), ("/gone", "410 Gone: It is gone"), ("/image", "image/png, which is not text"),
                            ("/brotli", "packed as br"), ("/loop", "more than 5 redirects"),
                            ("/out", "169.254.169.254 is a link-local or cloud metadata address"),
                            ("/scheme", "only http and https")):
            self.fails(client, "fetch_url", words, url=self.site.url + path)
        for url, words in (("ftp://example.org/", "only http and https"), ("http://", "names no host"),
                           ("http://u:secret@example.org/", "not accepted"), ("http://exa mple.org/", "spaces"),
                           ("http://example.invalid/", "there is no host"), ("http://[::1", "not an address"),
                           ("http://127.0.0.1:1/", "refused the connection"), ("x", "only http and https")):
            self.assertNotIn("secret", self.fails(client, "fetch_url", words, url=url))

    def test_limits(self):
        client = self.start(dict(self.environment(), HTTP_FETCH_MAX_BYTES="100000", HTTP_FETCH_TIMEOUT="1"))
        for path in ("/big", "/bomb"):
            text, failed = client.call("fetch_url", url=self.site.url + path, max_chars=200000)
            self.assertFalse(failed)
            self.assertIn("only the first 100000 bytes", text)
            self.assertLess(len(text), 101000)
        began = time.monotonic()
        self.fails(client, "fetch_url", "took longer than 1 s", url=self.site.url + "/slow")
        self.assertLess(time.monotonic() - began, 10)

    def test_server_that_never_answers(self):
        silent = socket.socket()
        self.addCleanup(silent.close)
        silent.bind(("127.0.0.1", 0))
        silent.listen(5)
        client = self.start(dict(self.environment(), HTTP_FETCH_TIMEOUT="1"))
        self.fails(client, "fetch_url", "took longer than 1 s", url="http://127.0.0.1:%d/" % silent.getsockname()[1])
        self.fails(client, "fetch_url", "took longer than 1 s", url="https://127.0.0.1:%d/" % silent.getsockname()[1])

    def test_tls_against_a_plain_server(self):
        self.fails(self.start(), "fetch_url", "TLS with 127.0.0.1 failed", url=self.site.url.replace("http", "https"))

    def test_parts(self):
        client = self.start()
        url = self.site.url + "/big"
        self.assertIn("Part: characters 0 to 100 of 2000000", client.call("fetch_url", url=url, max_chars=100)[0])
        self.assertIn("Part: characters 1999950 to 2000000 of", client.call("fetch_url", url=url, start=1999950)[0])
        self.fails(client, "fetch_url", "behind the end", url=url, start=2000000)

    def test_big_output_arrives_whole(self):
        text, failed = self.start().call("fetch_url", url=self.site.url + "/big", max_chars=200000)
        self.assertFalse(failed)
        self.assertEqual(len(text.partition("\n\n")[2]), 200000)

    def test_links_and_check(self):
        client = self.start()
        found = self.ok(client, "list_links", url=self.site.url + "/dir/page")
        self.assertEqual(found["links"], [{"text": "cup", "url": self.site.url + "/dir/cup?x=1"}])
        self.fails(client, "list_links", "not a web page", url=self.site.url + "/json")
        found = self.ok(client, "check_url", url=self.site.url + "/hop")
        self.assertEqual((found["status"], found["redirects"]), (200, [self.site.url + "/hop"]))
        self.assertEqual(self.ok(client, "check_url", url=self.site.url + "/gone")["status"], 410)
        self.fails(client, "check_url", "there is no host", url="http://example.invalid/")

    def test_private_addresses_are_refused(self):
        client = self.start({})
        before = len(self.site.requests)
        for host in ("127.0.0.1", "localhost", "0.0.0.0", "127.1", "2130706433", "0x7f.1", "[::1]", "[::ffff:127.0.0.1]",
                     "10.0.0.1", "192.168.1.1", "172.16.0.1", "100.64.0.1", "169.254.169.254", "[fe80::1]", "[fd00::1]",
                     "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "224.0.0.1", "x.localhost", "metadata.google.internal"):
            text, failed = client.call("fetch_url", url="http://%s:%d/json" % (host, self.site.port))
            self.assertTrue(failed, host)
            self.assertRegex(text, "not allowed|there is no host", host)
        self.assertEqual(len(self.site.requests), before)
        self.fails(client, "fetch_url", "port 25 is not one of the web", url="http://example.org:25/")

    def test_metadata_is_refused_also_when_private_is_allowed(self):
        client = self.start()
        for host in ("169.254.169.254", "[fe80::1]", "[fd00:ec2::254]", "100.100.100.200", "[::ffff:169.254.169.254]",
                     "[64:ff9b::a9fe:a9fe]", "0.0.0.0", "224.0.0.1"):
            self.fails(client, "fetch_url", "not allowed", url="http://%s/" % host)

    def test_a_name_that_changes_its_mind(self):
        sys.path.insert(0, os.path.join(ROOT, "http-fetch"))
        try:
            import http_fetch
        finally:
            sys.path.pop(0)
        answers = [["93.184.216.34"], ["127.0.0.1"]]
        reached = []

        def connect(address, _timeout):
            reached.append(address[0])
            raise ConnectionRefusedError()
        real = http_fetch._resolve
        http_fetch._resolve = lambda *_args: answers.pop(0)
        try:
            with self.assertRaises(http_fetch.FetchError):
                http_fetch.fetch("http://rebind.test/", http_fetch.Policy(connect=connect))
        finally:
            http_fetch._resolve = real
        self.assertEqual((reached, len(answers)), (["93.184.216.34"], 1))

    def test_user_agent_and_settings(self):
        client = self.start(dict(self.environment(), HTTP_FETCH_USER_AGENT="tester/1"))
        self.ok(client, "check_url", url=self.site.url + "/json")
        self.assertEqual(self.site.requests[-1][1]["User-Agent"], "tester/1")
        for name, value in (("HTTP_FETCH_MAX_BYTES", "lots"), ("HTTP_FETCH_TIMEOUT", "0"), ("HTTP_FETCH_ALLOW_PRIVATE", "maybe"),
                            ("HTTP_FETCH_USER_AGENT", "a\nb"), ("HTTP_FETCH_TIMEOUT", "inf")):
            self.fails(self.start({name: value}), "check_url", name, url=self.site.url + "/json")

    def test_proxy(self):
        seen = []
        listener = socket.socket()
        self.addCleanup(listener.close)
        listener.bind(("127.0.0.1", 0))
        listener.listen(5)

        def serve():
            for _ in range(2):
                conn = listener.accept()[0]
                with conn:
                    seen.append(conn.recv(65536).decode())
                    conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nproxy")
        threading.Thread(target=serve, daemon=True).start()
        env = {"http_proxy": "http://me:pw@127.0.0.1:%d" % listener.getsockname()[1], "https_proxy": "http://127.0.0.1:%d" % listener.getsockname()[1]}
        client = self.start(env)
        self.assertIn("proxy", client.call("fetch_url", url="http://example.invalid/x")[0])
        self.assertIn("Proxy-Authorization: Basic bWU6cHc=", seen[0])
        self.assertTrue(seen[0].startswith("GET http://example.invalid:80/x HTTP/1.1"), seen)
        self.fails(client, "fetch_url", "TLS with example.invalid failed", url="https://example.invalid/x")
        self.assertTrue(seen[1].startswith("CONNECT example.invalid:443 "), seen)
        self.fails(client, "fetch_url", "not allowed", url="http://127.0.0.1/")

    def test_ping_is_answered_while_a_tool_runs_and_a_cancelled_call_is_not(self):
        client = self.start(dict(self.environment(), HTTP_FETCH_TIMEOUT="2"))
        client.write(json.dumps({"jsonrpc": "2.0", "id": "slow", "method": "tools/call", "params": {
            "name": "fetch_url", "arguments": {"url": self.site.url + "/slow"}}}).encode() + b"\n")
        self.assertEqual(client.request("ping", seconds=1.9)["result"], {})
        client.notify("notifications/cancelled", {"requestId": "slow"})
        self.assertFalse(client.call("fetch_url", url=self.site.url + "/json")[1])  # asserts on the id: no answer to "slow"

    def test_waiting_calls_are_answered_after_the_end_of_input(self):
        client = self.start()
        for n in range(5):
            client.write(json.dumps({"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": {
                "name": "check_url", "arguments": {"url": self.site.url + "/json"}}}).encode() + b"\n")
        client.process.stdin.close()
        self.assertEqual([client.receive()["id"] for _ in range(5)], list(range(5)))
        self.assertEqual(client.process.wait(30), 0)

    def test_verify(self):
        code, result, _ = self.run_verify({})
        self.assertEqual((code, result["ok"]), (0, True), result)
        code, result, _ = self.run_verify({"HTTP_FETCH_TIMEOUT": "0"})
        self.assertEqual((code, result["ok"], result["message"]), (1, False, "HTTP_FETCH_TIMEOUT must be a number from 1 to 120"))

    def test_verify_without_loopback(self):
        sys.path.insert(0, os.path.join(ROOT, "http-fetch"))
        try:
            import verify
        finally:
            sys.path.pop(0)

        def refused(*_args):
            raise PermissionError("no")
        real, verify.http.server.HTTPServer = verify.http.server.HTTPServer, refused
        try:
            result = verify.run()
        finally:
            verify.http.server.HTTPServer = real
        self.assertTrue(result["ok"], result)
        self.assertIn("socket pair", result["details"]["how"])


if __name__ == "__main__":
    unittest.main()
