"""HTTP servers on loopback for the tests."""

import http.server
import json
import threading
import urllib.parse


class Site:
    """A server whose pages are functions: routes[path](query) returns (status, headers, body).

    requests holds (path with query, headers) of everything that was asked for.
    """

    def __init__(self, routes):
        site = self
        self.requests = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                parts = urllib.parse.urlsplit(self.path)
                site.requests.append((self.path, dict(self.headers)))
                query = {k: v[0] for k, v in urllib.parse.parse_qs(parts.query, keep_blank_values=True).items()}
                route = routes.get(parts.path)
                if route is None:
                    status, headers, body = 404, {"Content-Type": "text/plain"}, b"nothing here"
                else:
                    status, headers, body = route(query)
                try:
                    self.send_response(status)
                    for name, value in headers.items():
                        self.send_header(name, value)
                    if not hasattr(body, "__next__") and "Content-Length" not in headers:
                        self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    for piece in body if hasattr(body, "__next__") else (body,):
                        self.wfile.write(piece)
                        self.wfile.flush()
                except OSError:
                    pass

            def log_message(self, *_args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.url = "http://127.0.0.1:%d" % self.port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def page(text, kind="text/html; charset=utf-8", status=200, **headers):
    """Return a route that always gives the same page."""
    body = text if isinstance(text, bytes) else text.encode("utf-8")
    headers = dict({"Content-Type": kind}, **{k.replace("_", "-"): v for k, v in headers.items()})
    return lambda _query: (status, headers, body)


def data(value, status=200):
    """Return the answer that gives value as JSON."""
    return status, {"Content-Type": "application/json; charset=utf-8"}, json.dumps(value).encode("utf-8")
