"""Proves that http-fetch works, without a network: serves a page of its own on loopback and
fetches it by the server's own code; then checks that the guard refuses that page when it
is not allowed, and a metadata address. Prints one JSON line; exit code 0 when all held.

Where a sandbox forbids loopback the page travels over a pair of connected sockets.
"""

import http.server
import json
import os
import socket
import sys
import threading

import http_fetch
from http_fetch_mcp_server import Fetcher, policy
from mcp_stdio import ToolError

PAGE = b"<!doctype html><title>Proof</title><main><h1>It works</h1><p>A <a href='/x'>link</a>.</p></main>"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(PAGE)))
        self.end_headers()
        self.wfile.write(PAGE)

    def log_message(self, *_args):
        pass


def serve():
    """Return (port, connect function or None, how)."""
    try:
        server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        port = server.server_address[1]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        socket.create_connection(("127.0.0.1", port), 5).close()
        return port, None, "a page on loopback"
    except OSError:
        def connect(_address, _timeout):
            ours, theirs = socket.socketpair()
            threading.Thread(target=answer, args=(theirs,), daemon=True).start()
            return ours

        def answer(sock):
            with sock:
                Handler(sock, ("127.0.0.1", 0), None)
        return 8080, connect, "a page over a socket pair, since loopback is not allowed here"


def refused(rules, url):
    try:
        http_fetch.fetch(url, rules)
    except http_fetch.FetchError as e:
        return "not allowed" in str(e)
    return False


def run():
    """Return the result object."""
    try:
        rules = policy(os.environ)
    except ToolError as e:
        return {"ok": False, "message": str(e)}
    port, connect, how = serve()
    url = "http://127.0.0.1:%d/" % port
    own = http_fetch.Policy(extra={("127.0.0.1", port)}, connect=connect, timeout=10)
    try:
        text = Fetcher(own).fetch_url({"url": url})
    except ToolError as e:
        return {"ok": False, "message": "fetching a page of our own failed: %s" % e, "details": {"how": how}}
    if "Title: Proof" not in text or "# It works" not in text or "[link](" not in text:
        return {"ok": False, "message": "a page of our own came back wrong", "details": {"how": how}}
    strict = http_fetch.Policy(timeout=10)
    if not refused(strict, url) or not refused(rules, "http://169.254.169.254/"):
        return {"ok": False, "message": "an address that must be refused was not", "details": {"how": how}}
    return {"ok": True, "message": "fetching works; private and metadata addresses are guarded",
            "details": {"how": how, "local network": "allowed" if rules.allow_private else "refused"}}


def main():
    result = run()
    sys.stdout.write(json.dumps(result) + "\n")
    sys.stdout.flush()
    return 0 if result["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
