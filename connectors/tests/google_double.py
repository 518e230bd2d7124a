"""A small double of the Google APIs that the connectors use, on loopback.

    python3 connectors/tests/google_double.py

prints one JSON line {"url", "auth_uri", "token_uri", "revoke_uri", "client_id",
"client_secret", "credential", "email"} and runs until its input ends; it grants every
consent at once. With an address as its argument it is the browser that goes there. Paths, field names, status codes and error bodies are those of the public reference
(developers.google.com: gmail/api, calendar/api, drive/api, identity/protocols/oauth2).
Every request but those for a token needs an access token that this server gave out, with
a scope that the method accepts. Tests can put failures in the way (fail) and look at what
was asked (requests).
"""

import base64
import hashlib
import http.server
import json
import re
import secrets
import sys
import threading
import time
import urllib.parse
import urllib.request

EMAIL = "ada@example.test"
CLIENT_ID, CLIENT_SECRET = "1234-double.apps.googleusercontent.com", "GOCSPX-double-secret"
CLOUD = "https://www.googleapis.com/auth/"
ALL_SCOPES = [CLOUD + s for s in ("gmail.modify", "calendar.events", "calendar.readonly", "drive")]
QUANTUM = 256 * 1024  # bytes; pieces of an upload but the last are multiples of it


class Refusal(Exception):
    """An error answer of an API."""

    def __init__(self, code, message, reason, status="", headers=None, domain="global", details=None):
        super().__init__(message)
        self.code, self.headers = code, headers or {}
        error = {"code": code, "message": message, "errors": [{"message": message, "domain": domain, "reason": reason}]}
        if status:
            error["status"] = status
        if details:
            error["details"] = details
        self.body = {"error": error}


def not_found(message="Requested entity was not found."):
    return Refusal(404, message, "notFound", "NOT_FOUND")


def bad(message, reason="invalidArgument"):
    return Refusal(400, message, reason, "INVALID_ARGUMENT")


def missing_scope(service):
    info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "ACCESS_TOKEN_SCOPE_INSUFFICIENT",
            "domain": "googleapis.com", "metadata": {"service": service}}
    out = Refusal(403, "Request had insufficient authentication scopes.", "insufficientPermissions", "PERMISSION_DENIED",
                  {"WWW-Authenticate": 'Bearer realm="https://accounts.google.com/", error="insufficient_scope"'}, details=[info])
    out.body["error"]["errors"][0]["message"] = "Insufficient Permission"
    return out


def disabled(service, title):
    url = "https://console.developers.google.com/apis/api/%s/overview?project=1234" % service
    text = ("%s has not been used in project 1234 before or it is disabled. Enable it by visiting %s then retry. If you enabled "
            "this API recently, wait a few minutes for the action to propagate to our systems and retry." % (title, url))
    return Refusal(403, text, "accessNotConfigured", "PERMISSION_DENIED", domain="usageLimits", details=[
        {"@type": "type.googleapis.com/google.rpc.Help", "links": [{"description": "Google developers console API activation", "url": url}]},
        {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "SERVICE_DISABLED", "domain": "googleapis.com",
         "metadata": {"service": service, "consumer": "projects/1234"}}])


def rate_limited(after="0"):
    return Refusal(429, "Too many concurrent requests for user", "rateLimitExceeded", "RESOURCE_EXHAUSTED",
                   {"Retry-After": after}, "usageLimits")


def outage(code=503):
    return Refusal(code, "The service is currently unavailable." if code == 503 else "Internal error encountered.", "backendError",
                   "UNAVAILABLE", {"Retry-After": "0"})


UNAUTHORIZED = Refusal(401, "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other "
                       "valid authentication credential.", "authError", "UNAUTHENTICATED",
                       {"WWW-Authenticate": 'Bearer realm="https://accounts.google.com/", error="invalid_token"'})


class Double:
    """The server. services are objects with prefix, service, title, routes and a scope rule."""

    def __init__(self, *services):
        self.services = services
        self.lock = threading.RLock()
        self.tokens, self.refreshes, self.scopes = {}, 0, list(ALL_SCOPES)
        self.refresh_token = "1//double-" + secrets.token_hex(12)
        self.expires_in, self.extra, self.token_answers = 3599, {}, []
        self.requests, self.failures, self.disabled, self.sessions, self.codes = [], [], set(), {}, {}
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.server.daemon_threads = True
        self.url = "http://127.0.0.1:%d" % self.server.server_address[1]
        for service in services:
            service.double = self
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    # -- for the tests

    def credential(self, **more):
        """Return the text of a delivered credential."""
        return json.dumps(dict({"type": "authorized_user", "client_id": CLIENT_ID, "client_secret": CLIENT_SECRET,
                                "refresh_token": self.refresh_token, "token_uri": self.url + "/token"}, **more))

    def give_token(self, seconds=3599):
        token = "ya29.double-" + secrets.token_hex(16)
        self.tokens[token] = (time.monotonic() + seconds, list(self.scopes))
        return token

    def fail(self, pattern, *refusals):
        """Answer the next requests that match "METHOD /path" with these; "drop" hangs up unanswered, "late" after the work
        was done, a number after so many bytes of the answer; None lets one through."""
        with self.lock:
            self.failures += [(pattern, r) for r in refusals]

    def asked(self, pattern):
        """Return the requests that match, as (method and path, query, headers, body)."""
        with self.lock:
            return [r for r in self.requests if re.search(pattern, r[0])]

    # -- serving

    def _handler(self):
        double = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self):
                data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                parts = urllib.parse.urlsplit(self.path)
                line = "%s %s" % (self.command, urllib.parse.unquote(parts.path))
                query = urllib.parse.parse_qs(parts.query, keep_blank_values=True)
                with double.lock:
                    double.requests.append((line, query, {k.title(): v for k, v in self.headers.items()}, data))
                    way = double._failure(line)
                if way == "drop":
                    self.close_connection = True
                    return
                try:
                    if isinstance(way, Refusal):
                        raise way
                    code, headers, body = double._answer(line, parts.path, query, self.headers, data)
                except Refusal as e:
                    code, headers, body = e.code, e.headers, e.body
                if way == "late":
                    self.close_connection = True
                    return
                self.reply(code, headers, body, way if isinstance(way, int) else None)

            def reply(self, code, headers, body, cut):
                raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
                try:
                    self.send_response(code)
                    for name, value in headers.items():
                        self.send_header(name, value)
                    if "Content-Type" not in headers:
                        self.send_header("Content-Type", "application/json; charset=UTF-8")
                    self.send_header("Content-Length", str(len(raw)))
                    self.end_headers()
                    self.wfile.write(raw if cut is None else raw[:cut])
                    if cut is not None:
                        self.close_connection = True
                except OSError:
                    self.close_connection = True

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any

            def log_message(self, *_args):
                pass
        return Handler

    def _failure(self, line):
        for n, (pattern, way) in enumerate(self.failures):
            if re.search(pattern, line):
                del self.failures[n]
                return way
        return None

    def _answer(self, line, path, query, headers, data):
        with self.lock:
            form = dict(urllib.parse.parse_qsl(data.decode("ascii"))) if line in ("POST /token", "POST /revoke") else {}
            if line == "POST /token":
                return self._token(form)
            if line == "POST /revoke":
                return self._revoke(form.get("token", query.get("token", [""])[0]))
            if line == "GET /auth":
                return self._consent({k: v[0] for k, v in query.items()})
            method, upload = line.split(" ")[0], path.startswith("/upload/")
            for service in self.services:
                if path[7:].startswith(service.prefix) if upload else path.startswith(service.prefix):
                    return self._serve(service, method, path[7:] if upload else path, query, headers, data, upload)
            raise not_found()

    def _serve(self, service, method, path, query, headers, data, upload):
        granted = self._granted(headers.get("Authorization", ""))
        if service.service in self.disabled:
            raise disabled(service.service, service.title)
        if upload and "upload_id" in query:
            return self._piece(query["upload_id"][0], headers, data)
        for verb, pattern, work in service.routes:
            match = re.match("^%s$" % pattern, path)
            if verb != method or not match:
                continue
            if not service.accepts(method, path, granted):
                raise missing_scope(service.service)
            args = [urllib.parse.unquote(g) for g in match.groups()]
            body = json.loads(data) if data and headers.get("Content-Type", "").startswith("application/json") else {}
            if upload:
                for ident in args if hasattr(service, "exists") else ():
                    service.exists(ident)  # told before anything is sent
                return self._session(service, headers, query, lambda content: work(*args, query, dict(body, _content=content)))
            out = work(*args, query, body)
            return out if isinstance(out, tuple) else (204 if out is None else 200, {}, out)
        raise Refusal(404, "Not Found", "notFound")

    def _granted(self, header):
        until, scopes = self.tokens.get(header[7:] if header.startswith("Bearer ") else "", (0, ()))
        if time.monotonic() >= until:
            raise UNAUTHORIZED
        return scopes

    def _token(self, form):
        self.refreshes += 1
        if self.token_answers:
            return self.token_answers.pop(0)
        if (form.get("client_id"), form.get("client_secret")) != (CLIENT_ID, CLIENT_SECRET):
            return 401, {}, {"error": "invalid_client", "error_description": "The OAuth client was not found."}
        if form.get("grant_type") == "authorization_code":
            return self._exchange(form)
        if form.get("grant_type") != "refresh_token":
            return 400, {}, {"error": "unsupported_grant_type", "error_description": "Invalid grant_type: "}
        if form.get("refresh_token") != self.refresh_token:
            return 400, {}, {"error": "invalid_grant", "error_description": "Token has been expired or revoked."}
        out = {"access_token": self.give_token(), "expires_in": self.expires_in, "scope": " ".join(self.scopes),
               "token_type": "Bearer"}
        return 200, {}, {k: v for k, v in dict(out, **self.extra).items() if v is not None}

    # -- sign-in: a consent page on which everything is ticked already

    def _consent(self, asked):
        back = urllib.parse.urlsplit(asked.get("redirect_uri", ""))
        if asked.get("client_id") != CLIENT_ID or back.hostname not in ("127.0.0.1", "localhost", "::1"):
            return 400, {"Content-Type": "text/html"}, b"<h1>Error 400: redirect_uri_mismatch</h1>"
        if asked.get("response_type") != "code" or asked.get("code_challenge_method") != "S256":
            return 400, {"Content-Type": "text/html"}, b"<h1>Error 400: invalid_request</h1>"
        code, scopes = "4/double-" + secrets.token_hex(12), asked.get("scope", "").split()
        self.codes[code] = asked, scopes
        answer = urllib.parse.urlencode({"state": asked.get("state", ""), "code": code, "scope": " ".join(scopes)})
        return 302, {"Location": asked["redirect_uri"] + "?" + answer}, b""

    def _exchange(self, form):
        asked, scopes = self.codes.pop(form.get("code"), ({}, []))
        proof = base64.urlsafe_b64encode(hashlib.sha256(form.get("code_verifier", "").encode("ascii")).digest()).decode().rstrip("=")
        if not asked or proof != asked["code_challenge"] or form.get("redirect_uri") != asked["redirect_uri"]:
            return 400, {}, {"error": "invalid_grant", "error_description": "Malformed auth code."}
        self.scopes = scopes
        out = {"access_token": self.give_token(), "expires_in": 3599, "scope": " ".join(scopes), "token_type": "Bearer"}
        if asked.get("access_type") == "offline":
            out["refresh_token"] = self.refresh_token
        return 200, {}, out

    def _revoke(self, token):
        if token != self.refresh_token and token not in self.tokens:
            return 400, {}, {"error": "invalid_token", "error_description": "Token expired or revoked"}
        self.tokens.clear()
        self.refresh_token = "1//double-" + secrets.token_hex(12)
        return 200, {}, {}

    # -- resumable uploads

    def _session(self, service, headers, query, finish):
        if query.get("uploadType") != ["resumable"]:
            raise bad("this double takes resumable uploads only")
        ident = secrets.token_hex(16)
        self.sessions[ident] = [bytearray(), int(headers["X-Upload-Content-Length"]), headers["X-Upload-Content-Type"], finish, None]
        return 200, {"Location": "%s/upload%s?uploadType=resumable&upload_id=%s" % (self.url, service.prefix, ident)}, None

    def _piece(self, ident, headers, data):
        if ident not in self.sessions:
            raise not_found("Upload session not found.")
        session = self.sessions[ident]
        stored, size, kind, finish, result = session
        match = re.match(r"^bytes (?:(\d+)-(\d+)|\*)/(\d+)$", headers.get("Content-Range", ""))
        if not match or int(match.group(3)) != size:
            raise bad("Failed to parse Content-Range header.", "parseError")
        if match.group(1) and result is None:
            first, last = int(match.group(1)), int(match.group(2))
            if first != len(stored) or len(data) != last - first + 1 or last + 1 < size and len(data) % QUANTUM:
                raise bad("Invalid request. There were %d byte(s) in the request body, from %d." % (len(data), first), "badRequest")
            stored += data
        if len(stored) == size and result is None:
            session[4] = finish((kind, bytes(stored)))
        if session[4] is not None:
            return 200, {}, session[4]
        return 308, {"Range": "bytes=0-%d" % (len(stored) - 1)} if stored else {}, None


def page(items, query, default, most, field="maxResults"):
    """Return (items of the page, {"nextPageToken"} or {})."""
    size = min(int(query.get(field, [default])[0]), most)
    try:
        start = int(query.get("pageToken", ["p0"])[0][1:])
    except ValueError:
        raise bad("Invalid pageToken") from None
    return items[start:start + size], {"nextPageToken": "p%d" % (start + size)} if start + size < len(items) else {}


def main():
    if len(sys.argv) > 1:
        urllib.request.urlopen(sys.argv[1], timeout=30).read()
        return
    from google_helpers import everything
    double = Double(*everything())
    print(json.dumps({"url": double.url, "auth_uri": double.url + "/auth", "token_uri": double.url + "/token",
                      "revoke_uri": double.url + "/revoke", "client_id": CLIENT_ID, "client_secret": CLIENT_SECRET,
                      "credential": json.loads(double.credential()), "email": EMAIL}), flush=True)
    sys.stdin.read()
    double.close()


if __name__ == "__main__":
    main()
