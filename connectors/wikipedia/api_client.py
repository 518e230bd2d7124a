"""Asking a public JSON service, politely and within limits.

The same file stands in the connectors that need it; a test keeps the copies equal. One
request at a time; an answer has at most MAX_ANSWER bytes; "too many requests" and a short
outage are waited for once, when the service asks for no more than MAX_PAUSE seconds; a
redirect is followed only to the same host or a host of the same family, never from https
to http.
"""

import http.client
import json
import socket
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
import zlib

TIMEOUT = 20          # seconds for one answer
MAX_ANSWER = 8 << 20  # bytes; the largest pages of an encyclopedia have one or two MiB
MAX_PAUSE = 5         # seconds


class ApiError(Exception):
    """A question that was not answered; kind is host, refused, timeout, tls, unreachable,
    busy, status or answer."""

    def __init__(self, kind, message, status=0, body=None):
        super().__init__(message)
        self.kind, self.status, self.body = kind, status, body


class _SameFamily(urllib.request.HTTPRedirectHandler):
    max_redirections = 5

    def redirect_request(self, req, fp, code, msg, headers, newurl):
        old, new = urllib.parse.urlsplit(req.full_url), urllib.parse.urlsplit(newurl)
        if new.scheme != "https" and old.scheme == "https" or _family(old.hostname) != _family(new.hostname):
            raise ApiError("answer", "%s redirects to %s, which is not followed" % (old.hostname, new.hostname))
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _family(host):
    return (host or "").split(".")[-2:]


def base_url(name, value, default):
    """Return the base address in a setting, without a last slash. Raises ApiError."""
    value = (value or "").strip() or default
    try:
        parts = urllib.parse.urlsplit(value)
        parts.port
    except ValueError:
        parts = urllib.parse.urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment or "@" in parts.netloc:
        raise ApiError("answer", "%s must be an address such as %s" % (name, default or "https://example.org"))
    return value.rstrip("/")


class Client:
    """Asks services under one user agent."""

    def __init__(self, user_agent, sleep=time.sleep):
        self._headers = {"User-Agent": user_agent, "Accept": "application/json", "Accept-Encoding": "gzip"}
        self._opener = urllib.request.build_opener(_SameFamily)
        self._sleep = sleep

    def get(self, url, params=None):
        """Return the JSON object or list at url. Raises ApiError; for an error status the
        JSON that came with it is in ApiError.body."""
        if params:
            url += "?" + urllib.parse.urlencode({k: v for k, v in params.items() if v is not None})
        for attempt in (1, 2):
            try:
                return self._get(url)
            except ApiError as e:
                if e.kind != "busy" or attempt == 2 or e.body > MAX_PAUSE:
                    raise
                self._sleep(e.body)

    def _get(self, url):
        host = urllib.parse.urlsplit(url).hostname
        try:
            with self._opener.open(urllib.request.Request(url, headers=self._headers), timeout=TIMEOUT) as answer:
                return self._json(host, answer, answer.read(MAX_ANSWER + 1))
        except urllib.error.HTTPError as e:
            raise self._status(host, e) from None
        except ApiError:
            raise
        except urllib.error.URLError as e:
            raise _unreachable(host, e.reason) from None
        except (OSError, http.client.HTTPException, ValueError, EOFError, zlib.error) as e:
            raise _unreachable(host, e) from None

    def _status(self, host, error):
        try:
            body = self._json(host, error, error.read(MAX_ANSWER + 1))
        except (ApiError, OSError, http.client.HTTPException, EOFError, zlib.error):
            body = None
        if error.code in (429, 503):
            pause = (error.headers.get("Retry-After") or "1").strip()
            seconds = int(pause) if pause.isdigit() and len(pause) < 6 else 1
            return ApiError("busy", "%s is busy or limits how often it may be asked (%d); try again later"
                            % (host, error.code), error.code, seconds)
        return ApiError("status", "%s answered %d %s" % (host, error.code, str(error.reason)[:100]), error.code, body)

    @staticmethod
    def _json(host, answer, data):
        if len(data) > MAX_ANSWER:
            raise ApiError("answer", "%s answered with more than %d bytes" % (host, MAX_ANSWER))
        if (answer.headers.get("Content-Encoding") or "").lower() == "gzip":
            unpack = zlib.decompressobj(16 + zlib.MAX_WBITS)
            data = unpack.decompress(data, MAX_ANSWER)
            if unpack.unconsumed_tail:
                raise ApiError("answer", "%s answered with more than %d bytes" % (host, MAX_ANSWER))
        try:
            value = json.loads(data.decode("utf-8-sig"))
        except (ValueError, RecursionError):
            if data.lstrip()[:1] == b"<":
                raise ApiError("answer", "%s answered with a web page instead of data; a sign-in page or a proxy may be "
                               "in between" % host) from None
            raise ApiError("answer", "%s answered with something that is not JSON" % host) from None
        if not isinstance(value, (dict, list)):
            raise ApiError("answer", "%s answered with something unexpected" % host)
        return value


def _unreachable(host, reason):
    if isinstance(reason, socket.gaierror):
        return ApiError("host", "there is no host %s, or there is no network" % host)
    if isinstance(reason, socket.timeout):
        return ApiError("timeout", "%s did not answer within %d seconds" % (host, TIMEOUT))
    if isinstance(reason, ConnectionRefusedError):
        return ApiError("refused", "%s refused the connection" % host)
    if isinstance(reason, ssl.SSLCertVerificationError):
        return ApiError("tls", "the certificate of %s is not trusted: %s" % (host, reason.verify_message))
    if isinstance(reason, ssl.SSLError):
        return ApiError("tls", "TLS with %s failed: %s" % (host, reason.reason))
    if isinstance(reason, OSError):
        return ApiError("unreachable", "%s cannot be reached: %s" % (host, reason.strerror or "the connection was dropped"))
    return ApiError("answer", "%s did not answer properly (%s)" % (host, type(reason).__name__))
