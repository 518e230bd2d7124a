"""Fetching one address within limits, without reaching what the user did not mean.

The rules, each at one place below:

- http and https only, no credentials in the address, at most MAX_REDIRECTS redirects,
  none from https to http; every hop is checked like the first.
- The host is resolved once, each address is judged, and the connection goes to the very
  address that was judged, so a name that changes its mind in between is of no use.
- Link-local and cloud metadata addresses are never reached. Addresses of this machine and
  of private networks are reached only when Policy.allow_private says so.
- The whole fetch ends at Policy.timeout; at most Policy.max_bytes are read, unpacked
  bytes counted.

A proxy that the environment names is used; then the proxy connects, and the host is judged
by what it resolves to here, when it resolves at all.
"""

import base64
import http.client
import ipaddress
import socket
import ssl
import threading
import time
import urllib.parse
import urllib.request
import zlib

MAX_REDIRECTS = 5
MAX_URL = 8000
# Reached by no setting: they hand out the credentials of a cloud machine.
METADATA = [ipaddress.ip_network(n) for n in ("169.254.0.0/16", "fe80::/10", "fd00:ec2::/32", "100.100.100.200/32",
                                              "168.63.129.16/32", "192.0.0.192/32")]
NAT64 = ipaddress.ip_network("64:ff9b::/96")
TEXT_TYPES = ("application/json", "application/xml", "application/xhtml+xml", "application/javascript",
              "application/x-javascript", "application/yaml", "application/x-yaml", "application/toml",
              "application/x-ndjson", "application/ld+json", "application/graphql", "application/sql")


class FetchError(Exception):
    """A fetch that was refused or failed; the message is for the caller."""


class Policy:
    """What a fetch may do. extra is a set of (host, port) that is allowed besides; only
    verify.py uses it, for a page of its own. connect replaces the opening of sockets."""

    def __init__(self, allow_private=False, max_bytes=2000000, timeout=30, user_agent="", proxies=None,
                 extra=frozenset(), connect=None):
        self.allow_private = allow_private
        self.max_bytes = max_bytes
        self.timeout = timeout
        self.user_agent = user_agent or "skald-http-fetch/1.0"
        self.proxies = proxies or {}
        self.extra = extra
        self.connect = connect or socket.create_connection


class Page:
    """What came back: url is the last one, redirects those before it."""

    def __init__(self, url, status, reason, headers, redirects):
        self.url, self.status, self.reason, self.redirects = url, status, reason, redirects
        self.headers = headers
        self.body, self.cut = b"", False

    @property
    def kind(self):
        """The media type in lower case, without parameters."""
        return (self.headers.get("Content-Type") or "").split(";")[0].strip().lower()

    @property
    def is_html(self):
        return self.kind in ("text/html", "application/xhtml+xml") or (
            not self.kind and self.body.lstrip()[:15].lower().startswith((b"<!doctype html", b"<html")))

    @property
    def is_text(self):
        kind = self.kind
        return kind.startswith("text/") or kind in TEXT_TYPES or kind.endswith(("+json", "+xml")) or (
            not kind and b"\0" not in self.body[:4096])

    def text(self):
        """Return the body as text: byte order mark, declared charset, meta tag, UTF-8, Windows-1252."""
        for mark, name in ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
            if self.body.startswith(mark):
                return self.body.decode(name, "replace")
        for name in (self.headers.get_content_charset(), _meta_charset(self.body) if self.is_html else None, "utf-8"):
            try:
                if name:
                    return self.body.decode(name, "strict" if not self.cut else "replace")
            except (LookupError, UnicodeError, ValueError):
                continue
        return self.body.decode("cp1252", "replace")


def _meta_charset(body):
    head = body[:2048].lower()
    at = head.find(b"charset=")
    if at < 0:
        return None
    name = head[at + 8:at + 50].lstrip(b"\"' ")
    return "".join(chr(c) for c in name[:next((n for n, c in enumerate(name) if c in b"\"'>; /"), len(name))]) or None


# ---------------------------------------------------------------- where to

def parse_url(url):
    """Return the parts of an address: (scheme, host, port, path with query). Raises FetchError."""
    if len(url) > MAX_URL:
        raise FetchError("the address is longer than %d characters" % MAX_URL)
    if any(ord(c) <= 32 or ord(c) == 127 for c in url):
        raise FetchError("the address holds spaces or control characters; write them as %20 and so on")
    try:
        parts = urllib.parse.urlsplit(url)
        port = parts.port
        host = parts.hostname or ""
        host = host if host.isascii() else host.encode("idna").decode("ascii")
    except (ValueError, UnicodeError):
        raise FetchError("this is not an address: %s" % shown(url)) from None
    if parts.scheme not in ("http", "https"):
        raise FetchError("only http and https addresses are fetched, not %s" % (shown(parts.scheme) or "this"))
    if not host or "\\" in url:
        raise FetchError("the address names no host")
    if parts.username is not None or parts.password is not None:
        raise FetchError("user name and password in an address are not accepted")
    path = urllib.parse.quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._")
    if parts.query:
        path += "?" + urllib.parse.quote(parts.query, safe="/?%:@!$&'()*+,;=~-._[]|")
    if port == 0:
        raise FetchError("port 0 cannot be reached")
    return parts.scheme, host.rstrip(".") or host, port or (443 if parts.scheme == "https" else 80), path


def shown(url):
    """Return an address for a message: cut, and without what could be credentials."""
    scheme, mark, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    if mark and "@" in authority:
        url = scheme + mark + authority.rpartition("@")[2] + slash + path
    return url[:200]


def judge(address, allow_private):
    """Return why an address (text) must not be reached, or None."""
    ip = ipaddress.ip_address(address.split("%")[0])
    inner = [ip]
    if ip.version == 6:
        inner += [i for i in (ip.ipv4_mapped, ip.sixtofour) if i]
        inner += [ip.teredo[1]] if ip.teredo else []
        if ip in NAT64:
            inner.append(ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF))
    for i in inner:
        if any(i.version == net.version and i in net for net in METADATA):
            return "a link-local or cloud metadata address"
        if i.is_multicast or i.is_unspecified:
            return "not the address of one machine"
    if not allow_private and not all(i.is_global for i in inner[1:] or inner):
        return "on this machine or in a private network"
    return None


def _resolve(host, port, until):
    """Return the addresses of a host, in the system's order, within the time that is left."""
    found = []

    def look_up():
        try:
            found.append(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except (OSError, UnicodeError):
            found.append([])
    thread = threading.Thread(target=look_up, daemon=True)
    thread.start()
    thread.join(max(0.0, until - time.monotonic()))
    if not found:
        raise FetchError("looking up %s took too long" % host)
    return list(dict.fromkeys(info[4][0] for info in found[0]))


def allowed_addresses(host, port, policy, until, must_resolve=True):
    """Return the addresses of host that may be reached. Raises FetchError when there is none."""
    if (host, port) in policy.extra:
        return [host]
    if port < 1024 and port not in (80, 443) and not policy.allow_private:
        raise FetchError("port %d is not one of the web; only 80, 443 and ports from 1024 are" % port)
    if not policy.allow_private and (host == "localhost" or host.endswith((".localhost", ".internal"))):
        raise FetchError("%s is on this machine or in a private network; fetching it is not allowed" % host)
    addresses = _resolve(host, port, until)
    if not addresses:
        if must_resolve:
            raise FetchError("there is no host %s" % host)
        return []
    reasons = {a: judge(a, policy.allow_private) for a in addresses}
    good = [a for a in addresses if reasons[a] is None]
    if not good:
        raise FetchError("%s is %s; fetching it is not allowed" % (host, reasons[addresses[0]]))
    return good


# ---------------------------------------------------------------- the fetch

def fetch(url, policy, read_body=True):
    """Return the Page at url, redirects followed. Raises FetchError."""
    until = time.monotonic() + policy.timeout
    redirects = []
    while True:
        page = _one(url, policy, until, redirects, read_body)
        target = page.headers.get("Location")
        if page.status not in (301, 302, 303, 307, 308) or not target:
            return page
        if len(redirects) >= MAX_REDIRECTS:
            raise FetchError("more than %d redirects; the last one goes to %s" % (MAX_REDIRECTS, shown(target)))
        redirects.append(url)
        following = urllib.parse.urljoin(url, target.strip()).partition("#")[0]
        if url.startswith("https:") and following.startswith("http:"):
            raise FetchError("redirected from https to unencrypted %s; not followed" % shown(following))
        url = following


class _Watchdog:
    """Closes the socket when the time is up, whatever the other side dribbles."""

    def __init__(self, until):
        self.sock, self.rang = None, False
        self._timer = threading.Timer(max(0.01, until - time.monotonic()), self._ring)
        self._timer.daemon = True
        self._timer.start()

    def _ring(self):
        self.rang = True
        try:
            if self.sock is not None:
                socket.socket.shutdown(self.sock, socket.SHUT_RDWR)
        except OSError:
            pass

    def cancel(self):
        self._timer.cancel()


def _one(url, policy, until, redirects, read_body):
    scheme, host, port, path = parse_url(url)
    if time.monotonic() >= until:
        raise FetchError("the fetch took longer than %s s" % policy.timeout)
    watchdog, conn = _Watchdog(until), None
    try:
        conn, target = _open(scheme, host, port, path, policy, until, watchdog)
        conn.putrequest("GET", target, skip_accept_encoding=True)
        for name, value in (("User-Agent", policy.user_agent), ("Accept-Encoding", "gzip"), ("Connection", "close"),
                            ("Accept", "text/html,application/xhtml+xml,application/json,text/*;q=0.9,*/*;q=0.5")):
            conn.putheader(name, value)
        conn.endheaders()
        response = conn.getresponse()
        page = Page(url, response.status, response.reason, response.headers, list(redirects))
        if read_body and response.status not in (301, 302, 303, 307, 308):
            page.body, page.cut = _read(response, policy.max_bytes)
        if watchdog.rang:
            raise FetchError("%s took longer than %s s" % (host, policy.timeout))
        return page
    except FetchError:
        raise
    except Exception as e:  # a socket that the watchdog closed fails in many ways
        if watchdog.rang or isinstance(e, socket.timeout):
            raise FetchError("%s took longer than %s s" % (host, policy.timeout)) from None
        raise FetchError(_words(e, host, port)) from None
    finally:
        watchdog.cancel()
        if conn is not None:
            conn.close()


def _open(scheme, host, port, path, policy, until, watchdog):
    """Return (connection, request target)."""
    proxy = policy.proxies.get(scheme)
    if proxy and not urllib.request.proxy_bypass_environment(host, policy.proxies):
        allowed_addresses(host, port, policy, until, must_resolve=False)
        return _open_proxy(proxy, scheme, host, port, path, until, watchdog)
    conn = http.client.HTTPConnection(host if ":" not in host else "[%s]" % host, port)
    error = None
    for address in allowed_addresses(host, port, policy, until):
        try:
            conn.sock = policy.connect((address, port), max(0.1, until - time.monotonic()))
            break
        except OSError as e:
            error = e
    else:
        raise error
    watchdog.sock = conn.sock
    if scheme == "https":
        watchdog.sock = conn.sock = ssl.create_default_context().wrap_socket(conn.sock, server_hostname=host)
        conn.default_port = 443
    return conn, path


def _open_proxy(proxy, scheme, host, port, path, until, watchdog):
    parts = urllib.parse.urlsplit(proxy if "://" in proxy else "http://" + proxy)
    conn = http.client.HTTPConnection(parts.hostname, parts.port or 80, timeout=max(0.1, until - time.monotonic()))
    headers = {}
    if parts.username is not None:
        user = "%s:%s" % (urllib.parse.unquote(parts.username), urllib.parse.unquote(parts.password or ""))
        headers["Proxy-Authorization"] = "Basic " + base64.b64encode(user.encode()).decode("ascii")
    if scheme == "https":
        conn.set_tunnel(host, port, headers)
        conn.connect()
        conn.sock = ssl.create_default_context().wrap_socket(conn.sock, server_hostname=host)
        watchdog.sock = conn.sock
        return conn, path
    conn.connect()
    watchdog.sock = conn.sock
    where = "[%s]" % host if ":" in host else host
    return _WithHeaders(conn, headers), "http://%s:%d%s" % (where, port, path)


class _WithHeaders:
    """A connection that adds headers to each request."""

    def __init__(self, conn, headers):
        self._conn, self._headers = conn, headers

    def __getattr__(self, name):
        return getattr(self._conn, name)

    def endheaders(self):
        for name, value in self._headers.items():
            self._conn.putheader(name, value)
        self._conn.endheaders()


def _read(response, limit):
    """Return (body, cut?): at most limit bytes after unpacking."""
    coding = (response.headers.get("Content-Encoding") or "identity").strip().lower()
    if coding in ("gzip", "x-gzip"):
        unpack = zlib.decompressobj(16 + zlib.MAX_WBITS)
    elif coding == "deflate":
        unpack = zlib.decompressobj()
    elif coding in ("identity", ""):
        unpack = None
    else:
        raise FetchError("the page is packed as %s, which was not asked for" % coding[:40])
    body = bytearray()
    while len(body) <= limit:
        data = response.read1(65536)
        if not data:
            break
        body += data if unpack is None else unpack.decompress(data, limit + 1 - len(body))
        if unpack is not None and unpack.eof:
            break
    return bytes(body[:limit]), len(body) > limit


def _words(error, host, port):
    if isinstance(error, ssl.SSLCertVerificationError):
        return "the certificate of %s is not trusted: %s" % (host, error.verify_message)
    if isinstance(error, ssl.SSLError):
        return "TLS with %s failed: %s" % (host, error.reason or "no reason given")
    if isinstance(error, ConnectionRefusedError):
        return "%s refused the connection on port %d" % (host, port)
    if isinstance(error, socket.gaierror):
        return "there is no host %s, or the proxy's name does not resolve" % host
    if isinstance(error, http.client.HTTPException):
        return "%s did not speak proper HTTP (%s)" % (host, type(error).__name__)
    if isinstance(error, zlib.error):
        return "the page is packed wrongly"
    if isinstance(error, OSError):
        return "%s cannot be reached: %s" % (host, error.strerror or type(error).__name__)
    return "fetching from %s failed (%s)" % (host, type(error).__name__)
