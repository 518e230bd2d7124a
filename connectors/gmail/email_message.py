"""Reading messages: headers, text and attachments, out of whatever was sent.

Mail in the wild breaks every rule; nothing here fails on a malformed header, an unknown
charset or a broken encoding. The old policy of the email package is used on purpose: the
new one raises on some broken headers.
"""

import email
import email.header
import email.policy
import email.utils
import re
from html.parser import HTMLParser

MAX_HEADER = 1000  # characters of one header value that are shown


def read(data):
    """Return the email.message.Message in data."""
    return email.message_from_bytes(data, policy=email.policy.compat32)


def header(message, name, limit=MAX_HEADER):
    """Return a header's decoded value as one line; empty when it is not there."""
    value = message.get(name)
    return "" if value is None else decode(value)[:limit]


def decode(value):
    """Return the text of a header value, encoded words and raw bytes included."""
    try:
        parts = email.header.decode_header(value)
    except Exception:  # the package raises several kinds on broken encoded words
        parts = [(str(value), None)]
    out = []
    for part, charset in parts:
        if isinstance(part, str):
            part = part.encode("ascii", "surrogateescape") if _escaped(part) else part.encode("utf-8", "replace")
            charset = "utf-8"
        out.append(to_text(part, None if charset == "unknown-8bit" else charset))
    return " ".join("".join(c if c.isprintable() else " " for c in "".join(out)).split())


def _escaped(text):
    return any("\udc80" <= c <= "\udcff" for c in text) and all(ord(c) < 128 or "\udc80" <= c <= "\udcff" for c in text)


def to_text(data, charset):
    """Decode bytes by charset, else as UTF-8, else as Latin-1."""
    for name in (charset, "utf-8"):
        try:
            if name:
                return data.decode(name)
        except (LookupError, UnicodeError, ValueError):
            continue
    return data.decode("latin-1")


def addresses(message, *names):
    """Return [(display name, address)] of the address headers."""
    values = []
    for name in names:
        values += [str(v) for v in message.get_all(name, [])]
    return [(decode(shown), addr) for shown, addr in email.utils.getaddresses(values) if "@" in addr]


def parts(message):
    """Return (text parts, attachments): two lists of leaf parts in document order."""
    texts, attached = [], []
    for part in message.walk():
        if part.is_multipart():
            continue
        named = filename(part)
        if part.get_content_disposition() == "attachment" or named or part.get_content_maintype() != "text":
            attached.append(part)
        else:
            texts.append(part)
    return texts, attached


def filename(part):
    """Return the file name that a part declares, decoded; empty when it has none."""
    try:
        name = part.get_filename()
    except Exception:
        return ""
    return decode(name) if name else ""


def payload(part):
    """Return the bytes of a leaf part, with its transfer encoding undone."""
    try:
        data = part.get_payload(decode=True)
    except Exception:
        data = None
    return data if isinstance(data, bytes) else b""


def body(message, kind="text"):
    """Return the message as text; kind "html" returns the HTML part as it is, when there is one."""
    texts, _ = parts(message)
    plain = [p for p in texts if p.get_content_subtype() == "plain"]
    rich = [p for p in texts if p.get_content_subtype() == "html"]
    if kind == "html" and rich:
        return "\n".join(_decoded(p) for p in rich)
    if plain:
        return "\n".join(_decoded(p) for p in plain).replace("\r\n", "\n")
    return "\n".join(html_to_text(_decoded(p)) for p in rich or texts)


def _decoded(part):
    try:
        charset = part.get_content_charset()
    except Exception:
        charset = None
    return to_text(payload(part), charset)


class _Text(HTMLParser):
    BREAKS = {"p", "div", "br", "tr", "li", "h1", "h2", "h3", "h4", "h5", "h6", "table", "blockquote", "hr", "ul", "ol"}
    SILENT = {"script", "style", "head", "title", "template"}

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.out, self.silent, self.link = [], 0, None

    def handle_starttag(self, tag, attrs):
        if tag in self.SILENT:
            self.silent += 1
        elif tag in self.BREAKS:
            self.out.append("\n- " if tag == "li" else "\n")
        elif tag == "a":
            self.link = dict(attrs).get("href")

    def handle_endtag(self, tag):
        if tag in self.SILENT and self.silent:
            self.silent -= 1
        elif tag == "a":
            if self.link and self.link.startswith(("http:", "https:")):
                self.out.append(" (%s)" % self.link[:300])
            self.link = None
        elif tag in self.BREAKS and tag != "br":
            self.out.append("\n")

    def handle_data(self, data):
        if not self.silent:
            self.out.append(re.sub(r"\s+", " ", data))


def html_to_text(html):
    """Return the readable text of an HTML body, links in brackets."""
    parser = _Text()
    try:
        parser.feed(html)
        parser.close()
    except Exception:  # what was read so far is better than nothing
        pass
    lines = [line.strip() for line in "".join(parser.out).replace("\xa0", " ").split("\n")]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
