"""Settings of the email connector, and the one way to open a connection with them.

The server and verify.py both go through this file, so what verify has proved is what
the server does. Values come from the environment; the password is kept in a Settings
object that does not print it. A connection is encrypted, with the host name checked,
unless the server is on this machine.
"""

import base64
import imaplib
import os
import smtplib
import socket
import ssl

TIMEOUT = 25           # seconds for one answer of a server; mail servers are slow, not that slow
POLL_SECONDS = 60      # between two looks for new mail where the server has no IDLE
MAX_LITERAL = 40 << 20  # bytes of one message part; providers stop at 25 to 35 MiB
MAX_LINE = 8 << 20      # bytes of one line of an IMAP answer; a search of a million messages


class ConfigError(Exception):
    """A setting that cannot work; the message names it and never quotes a secret."""


class ConnectError(Exception):
    """A connection that could not be opened or a sign-in that was refused.

    kind is one of: password, host, refused, unreachable, tls, timeout, protocol.
    """

    def __init__(self, kind, message):
        super().__init__(message)
        self.kind = kind


class Settings:
    """The checked settings. Fields carry the names of their variables without EMAIL_."""

    def __init__(self, env):
        self.imap_host = _host(env, "EMAIL_IMAP_HOST")
        self.imap_port = _port(env, "EMAIL_IMAP_PORT", 993)
        self.imap_security = _security(env, "EMAIL_IMAP_SECURITY", self.imap_host,
                                       {993: "ssl", 143: "starttls"}.get(self.imap_port, "ssl"))
        self.smtp_host = _host(env, "EMAIL_SMTP_HOST")
        self.smtp_port = _port(env, "EMAIL_SMTP_PORT", 465)
        self.smtp_security = _security(env, "EMAIL_SMTP_SECURITY", self.smtp_host,
                                       {587: "starttls", 25: "starttls"}.get(self.smtp_port, "ssl"))
        self.username = _required(env, "EMAIL_USERNAME")
        self.password = _required(env, "EMAIL_PASSWORD")
        self.sender = env.get("EMAIL_FROM", "").strip() or self.username
        self.attachments_dir = env.get("EMAIL_ATTACHMENTS_DIR", "").strip()
        self.save_sent = _boolean(env, "EMAIL_SAVE_SENT", True)
        self.push = _boolean(env, "EMAIL_PUSH", True)
        # Not offered in the form: how often to look where the server has no IDLE.
        self.poll_seconds = max(1, int(env.get("EMAIL_POLL_SECONDS") or POLL_SECONDS))
        self.ca_file = env.get("EMAIL_CA_FILE", "").strip()

    def __repr__(self):
        return "Settings(%s@%s:%d)" % (self.username, self.imap_host, self.imap_port)

    def tls_context(self):
        """Return a context that checks the host name against the system's authorities
        and, when it is set, against EMAIL_CA_FILE."""
        try:
            context = ssl.create_default_context()
            context.minimum_version = ssl.TLSVersion.TLSv1_2
            if self.ca_file:
                context.load_verify_locations(cafile=self.ca_file)
                # Home-made authorities often lack the extensions that Python asks for since
                # 3.13; chain, dates and host name are checked as before.
                context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        except (OSError, ssl.SSLError) as e:
            raise ConfigError("EMAIL_CA_FILE cannot be used: %s" % _reason(e)) from None
        return context


def from_environment():
    """Return the settings of this process."""
    return Settings(os.environ)


def _required(env, name):
    value = env.get(name, "")
    if not value.strip():
        raise ConfigError("%s is not set" % name)
    if any(c in value for c in "\r\n\0"):
        raise ConfigError("%s holds a line break or a NUL" % name)
    return value if name == "EMAIL_PASSWORD" else value.strip()


def _host(env, name):
    host = _required(env, name).strip("[]")
    if "://" in host or "/" in host or " " in host or "@" in host:
        raise ConfigError("%s must be a host name such as mail.example.org, not an address" % name)
    return host


def _port(env, name, default):
    text = env.get(name, "").strip() or str(default)
    try:
        port = int(text)
    except ValueError:
        port = 0
    if not 1 <= port <= 65535:
        raise ConfigError("%s must be a number from 1 to 65535" % name)
    return port


def _boolean(env, name, default):
    text = env.get(name, "").strip().lower()
    if text in ("", "auto"):
        return default
    if text in ("true", "1", "yes", "on"):
        return True
    if text in ("false", "0", "no", "off"):
        return False
    raise ConfigError("%s must be true or false" % name)


def _security(env, name, host, by_port):
    value = env.get(name, "").strip().lower() or "auto"
    if value == "auto":
        return by_port
    if value not in ("ssl", "starttls", "none"):
        raise ConfigError("%s must be auto, ssl, starttls or none" % name)
    if value == "none" and not is_loopback(host):
        raise ConfigError("%s may be none only for a server on this machine" % name)
    return value


def is_loopback(host):
    """Tell whether host is this machine by its name alone; no look-up is made."""
    if host.lower() in ("localhost", "::1"):
        return True
    parts = host.split(".")
    return len(parts) == 4 and all(p.isdigit() for p in parts) and parts[0] == "127"


# ---------------------------------------------------------------- IMAP

class ImapConnection(imaplib.IMAP4):
    """imaplib's client on a buffer of our own.

    imaplib reads through a buffered file that is unusable after one timeout; the watcher
    needs timeouts. open, read, readline, send and shutdown are the methods that imaplib
    documents as those to override. Not safe for two threads, like imaplib itself.
    """

    def __init__(self, host, port, context, implicit_tls):
        self._buffer = bytearray()
        self._tls = context
        self._implicit_tls = implicit_tls
        super().__init__(host, port)

    def open(self, host="", port=imaplib.IMAP4_PORT, timeout=None):
        self.host, self.port = host, port
        self.sock = socket.create_connection((host, port), TIMEOUT)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if self._implicit_tls:
            self.sock = self._tls.wrap_socket(self.sock, server_hostname=host)

    def wait(self, seconds):
        """Set how long one read may take."""
        self.sock.settimeout(seconds)

    def pending(self):
        """Tell whether bytes were received that nobody has read yet."""
        return bool(self._buffer)

    def _fill(self):
        data = self.sock.recv(65536)
        if not data:
            raise self.abort("the server closed the connection")
        self._buffer += data

    def read(self, size):
        if size > MAX_LITERAL:
            raise self.abort("the server sent a part of %d bytes; %d are read at most" % (size, MAX_LITERAL))
        while len(self._buffer) < size:
            self._fill()
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        return data

    def readline(self):
        start = 0
        while True:
            end = self._buffer.find(b"\n", start)
            if end >= 0:
                line = bytes(self._buffer[:end + 1])
                del self._buffer[:end + 1]
                return line
            if len(self._buffer) > MAX_LINE:
                raise self.abort("the server sent a line of more than %d bytes" % MAX_LINE)
            start = len(self._buffer)
            self._fill()

    def send(self, data):
        self.sock.sendall(data)

    def shutdown(self):
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.sock.close()


def open_imap(settings):
    """Return a signed-in ImapConnection. Raises ConnectError or ConfigError."""
    context = settings.tls_context()
    where = "IMAP server %s:%d" % (settings.imap_host, settings.imap_port)
    try:
        conn = ImapConnection(settings.imap_host, settings.imap_port, context,
                              settings.imap_security == "ssl")
    except (OSError, UnicodeError, imaplib.IMAP4.error) as e:
        raise _connect_error(where, settings.imap_security, settings.imap_port, e) from None
    try:
        if settings.imap_security == "starttls":
            _imap_starttls(conn, context)
        _imap_login(conn, settings)
        return conn
    except imaplib.IMAP4.abort as e:
        conn.shutdown()
        raise ConnectError("protocol", "%s: %s" % (where, _reason(e))) from None
    except (OSError, imaplib.IMAP4.error, ConnectError) as e:
        conn.shutdown()
        if isinstance(e, ConnectError):
            raise
        raise _connect_error(where, settings.imap_security, settings.imap_port, e) from None


def _imap_starttls(conn, context):
    if "STARTTLS" not in conn.capabilities:
        raise ConnectError("tls", "the IMAP server does not offer STARTTLS on port %d; it may want ssl" % conn.port)
    conn.starttls(ssl_context=context)
    if conn.pending():
        raise ConnectError("tls", "the IMAP server sent text in clear after STARTTLS; somebody may be in between")


def _imap_login(conn, settings):
    """Sign in by AUTHENTICATE PLAIN, which carries any character; LOGIN where it is not offered."""
    try:
        if "AUTH=PLAIN" in conn.capabilities:
            plain = ("\0%s\0%s" % (settings.username, settings.password)).encode("utf-8")
            status, data = conn.authenticate("PLAIN", lambda _challenge: plain)
        elif "LOGINDISABLED" in conn.capabilities:
            raise ConnectError("password", "the IMAP server takes no password on this connection")
        else:
            status, data = conn.login(_quote_login(settings.username), settings.password)
    except imaplib.IMAP4.abort:
        raise
    except imaplib.IMAP4.error as e:
        raise ConnectError("password", "the IMAP server refused user name or password%s"
                           % _server_words(e, settings)) from None
    except UnicodeEncodeError:
        raise ConnectError("password", "the IMAP server takes only ASCII in user name and password") from None
    if status != "OK":
        raise ConnectError("password", "the IMAP server refused user name or password")
    _status, data = conn.capability()  # it may offer more now
    conn.capabilities = tuple(data[-1].decode("ascii", "replace").upper().split())


def _quote_login(text):
    return '"%s"' % text.replace("\\", "\\\\").replace('"', '\\"')


# ---------------------------------------------------------------- SMTP

def open_smtp(settings):
    """Return a signed-in smtplib.SMTP. Raises ConnectError or ConfigError."""
    context = settings.tls_context()
    where = "SMTP server %s:%d" % (settings.smtp_host, settings.smtp_port)
    conn = None
    try:
        if settings.smtp_security == "ssl":
            conn = smtplib.SMTP_SSL(settings.smtp_host, settings.smtp_port, "localhost", timeout=TIMEOUT,
                                    context=context)
        else:
            conn = smtplib.SMTP(settings.smtp_host, settings.smtp_port, "localhost", timeout=TIMEOUT)
            conn.ehlo_or_helo_if_needed()
            if settings.smtp_security == "starttls":
                _smtp_starttls(conn, context)
        _smtp_login(conn, settings)
        return conn
    except smtplib.SMTPAuthenticationError as e:
        error = ConnectError("password", "the SMTP server refused user name or password%s"
                             % _server_words(e.smtp_error, settings))
    except smtplib.SMTPNotSupportedError:
        error = ConnectError("protocol", "%s offers no sign-in on this connection" % where)
    except UnicodeEncodeError:
        error = ConnectError("password", "the SMTP server takes only ASCII in user name and password")
    except ConnectError as e:
        error = e
    except (OSError, UnicodeError, smtplib.SMTPException) as e:
        error = _connect_error(where, settings.smtp_security, settings.smtp_port, e)
    if conn is not None:
        conn.close()
    raise error


def _smtp_login(conn, settings):
    """Sign in by AUTH PLAIN, which carries any character where smtplib's own takes ASCII
    only; by what smtplib knows where PLAIN is not offered."""
    conn.ehlo_or_helo_if_needed()
    if "PLAIN" not in conn.esmtp_features.get("auth", "").upper().split():
        conn.login(settings.username, settings.password)
        return
    plain_text = ("\0%s\0%s" % (settings.username, settings.password)).encode("utf-8")
    code, said = conn.docmd("AUTH", "PLAIN " + base64.b64encode(plain_text).decode("ascii"))
    if code == 334:  # the first response was not taken along
        code, said = conn.docmd(base64.b64encode(plain_text).decode("ascii"))
    if code not in (235, 503):  # 503: signed in already
        raise smtplib.SMTPAuthenticationError(code, said)


def _smtp_starttls(conn, context):
    if not conn.has_extn("starttls"):
        raise ConnectError("tls", "the SMTP server does not offer STARTTLS; it may want ssl on port 465")
    conn.starttls(context=context)
    conn.ehlo()


# ---------------------------------------------------------------- what went wrong

def _connect_error(where, security, port, error):
    """Return the ConnectError that says in plain words what happened."""
    if isinstance(error, socket.gaierror) or isinstance(error, UnicodeError):
        return ConnectError("host", "%s: there is no host of this name" % where)
    if isinstance(error, socket.timeout):
        return ConnectError("timeout", "%s did not answer within %d seconds; host, port or security may be wrong"
                            % (where, TIMEOUT))
    if isinstance(error, ConnectionRefusedError):
        return ConnectError("refused", "%s refused the connection; nothing listens on port %d" % (where, port))
    if isinstance(error, ssl.SSLCertVerificationError):
        return ConnectError("tls", "%s: its certificate is not trusted: %s; the authority of a private server "
                            "goes into EMAIL_CA_FILE" % (where, error.verify_message))
    if isinstance(error, ssl.SSLError):
        hint = "; it may want starttls on this port" if security == "ssl" else ""
        return ConnectError("tls", "%s: TLS failed: %s%s" % (where, _reason(error), hint))
    if isinstance(error, smtplib.SMTPServerDisconnected) or "closed" in _reason(error):
        hint = "; it may want ssl on this port" if security != "ssl" else ""
        return ConnectError("protocol", "%s closed the connection%s" % (where, hint))
    if isinstance(error, OSError) and not isinstance(error, smtplib.SMTPException):
        return ConnectError("unreachable", "%s cannot be reached: %s" % (where, _reason(error)))
    return ConnectError("protocol", "%s did not answer as such a server does: %s" % (where, _reason(error)))


def _reason(error):
    text = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error) or type(error).__name__
    return plain(text, 200)


def _server_words(said, settings):
    """Return ": what the server said", without the password."""
    text = plain(said, 200).replace(settings.password, "[redacted]").rstrip(" .")
    return ": " + text if text else ""


def plain(said, limit):
    """Return the words of a server as one line of at most limit characters."""
    if isinstance(said, BaseException):
        said = said.args[0] if said.args else ""
    if isinstance(said, bytes):
        said = said.decode("utf-8", "replace")
    return " ".join("".join(c if c.isprintable() else " " for c in str(said)).split())[:limit]
