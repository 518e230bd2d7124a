"""One exchange over HTTP with a server of Google's, and what can go wrong with it.

The same file stands in the Google connectors; a test keeps the copies equal. No redirect
is followed, every answer has a limit, a failure without an answer is told in plain words.
Python 3.9 or later, standard library only.
"""

import email.utils
import http.client
import json
import random
import socket
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request

from mcp_stdio import ToolError

TIMEOUT = 60            # seconds for one answer; an upload of one piece is answered when it is stored
MAX_ANSWER = 16 << 20   # bytes of an ordinary answer
MAX_ERROR = 1 << 20     # bytes of an error that are read
TRIES = 4               # of one request
MAX_WAIT = 30           # seconds that one call waits for retries in all
BLOCK = 1 << 18         # bytes of a download that are held
PASSING = ("outage", "unreachable", "offline", "busy")  # kinds of failure that may pass


class GoogleError(ToolError):
    """A question that was not answered.

    kind is one of: signin, client, scope, disabled, busy, quota, denied, missing, gone,
    conflict, input, outage, unreachable, offline (nothing was sent), answer, setting. status
    is the HTTP status or 0, pause the seconds that Retry-After asks for.
    """

    def __init__(self, kind, message, status=0, pause=None):
        super().__init__(message)
        self.kind, self.status, self.pause = kind, status, pause


def one_line(value, limit=300):
    """Return value as one line of printable text."""
    return " ".join("".join(c if c.isprintable() else " " for c in str(value)).split())[:limit]


def address(name, value, default):
    """Return the base address in a setting, without a last slash. Raises GoogleError."""
    value = (value or "").strip() or default
    try:
        parts = urllib.parse.urlsplit(value)
        parts.port
    except ValueError:
        parts = urllib.parse.urlsplit("")
    local = parts.hostname in ("127.0.0.1", "localhost", "::1")
    if not parts.hostname or "@" in parts.netloc or parts.query or parts.fragment or \
            not (parts.scheme == "https" or parts.scheme == "http" and local):
        raise GoogleError("setting", "%s must be an https address such as %s" % (name, default))
    return value.rstrip("/")


def flag(name, value, default):
    """Return the truth in a setting. Raises GoogleError."""
    text = (value or "").strip().lower()
    if text in ("", "true", "1", "yes", "on", "false", "0", "no", "off"):
        return text in ("true", "1", "yes", "on") if text else default
    raise GoogleError("setting", "%s must be true or false" % name)


def seconds(name, value, default):
    """Return the whole seconds in a setting, at least 1. Raises GoogleError."""
    text = (value or "").strip() or str(default)
    if not text.isdigit() or len(text) > 6 or int(text) < 1:
        raise GoogleError("setting", "%s must be a number of seconds" % name)
    return int(text)


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_args):
        return None  # the API does not redirect; a token would go along


def new_opener():
    """Return an opener with the proxies of the environment that follows no redirect."""
    return urllib.request.build_opener(_Stay)


def backoff(attempt):
    """Return the seconds to wait after an attempt, counted from 0."""
    return 2 ** attempt * 0.5 + random.random() * 0.25


def exchange(opener, method, url, data, headers, limit, sink=None):
    """Send one request; return (status, headers, body). With a sink, the body of a success
    goes to sink.begin(status) and sink.write(block) and is returned empty. Raises GoogleError without an answer."""
    host = urllib.parse.urlsplit(url).hostname
    request = urllib.request.Request(url, data, headers, method=method)
    try:
        try:
            answer = opener.open(request, timeout=TIMEOUT)
        except urllib.error.HTTPError as e:
            answer, sink, limit = e, None, MAX_ERROR
        with answer:
            if sink is not None:
                sink.begin(answer.code)
                return answer.code, answer.headers, _pour(host, answer, sink, limit)
            body = answer.read(limit + 1)
    except GoogleError:
        raise
    except urllib.error.URLError as e:
        raise unreachable(host, e.reason) from None
    except (OSError, http.client.HTTPException, ValueError) as e:
        raise unreachable(host, e) from None
    if len(body) > limit:
        raise GoogleError("answer", "%s answered with more than %d bytes" % (host, limit))
    if answer.headers.get("Content-Length", "").isdigit() and len(body) < int(answer.headers["Content-Length"]):
        raise GoogleError("unreachable", "%s dropped the connection" % host)
    return answer.code, answer.headers, body


def _pour(host, answer, sink, limit):
    declared, total = answer.headers.get("Content-Length", ""), 0
    while True:
        block = answer.read(BLOCK)
        if not block:
            break
        total += len(block)
        if total > limit:
            raise GoogleError("answer", "%s sent more than %d bytes" % (host, limit))
        sink.write(block)
    if declared.isdigit() and total < int(declared):
        raise GoogleError("unreachable", "%s dropped the connection" % host)
    return b""


def unreachable(host, reason):
    """Return the GoogleError for an exchange that had no answer."""
    said = "cannot be reached (%s)" % type(reason).__name__
    if isinstance(reason, socket.gaierror):
        return GoogleError("offline", "there is no host %s, or there is no network" % host)
    if isinstance(reason, socket.timeout):
        said = "did not answer within %d seconds" % TIMEOUT
    elif isinstance(reason, ConnectionRefusedError):
        return GoogleError("offline", "%s refused the connection" % host)
    elif isinstance(reason, ssl.SSLCertVerificationError):
        return GoogleError("setting", "the certificate of %s is not trusted: %s" % (host, reason.verify_message))
    elif isinstance(reason, OSError):
        said = "cannot be reached: %s" % (reason.strerror or one_line(reason, 100) or "the connection was dropped")
    elif isinstance(reason, http.client.HTTPException):
        said = "dropped the connection"
    return GoogleError("unreachable", "%s %s" % (host, said))


def object_in(body):
    """Return the JSON object in the bytes of a body; {} when it holds none."""
    try:
        value = json.loads(body.decode("utf-8"))
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def pause_in(head):
    """Return the seconds of Retry-After, in either form; None without one."""
    text = (head.get("Retry-After") or "").strip()
    if text.isdigit() and len(text) < 8:
        return int(text)
    moment = email.utils.parsedate_tz(text) if text else None
    return max(0, email.utils.mktime_tz(moment) - time.time()) if moment else None
