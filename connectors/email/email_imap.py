"""The IMAP side of the email connector: quoting, folder names, answers, one session.

imaplib neither quotes arguments nor reads answers; both are done here. A Mailbox is used
by one thread only; the watcher has a connection of its own.
"""

import base64
import imaplib
import time

from email_config import ConfigError, ConnectError, open_imap, plain
from mcp_stdio import ToolError

IDLE_CHECK = 20  # seconds after which a connection is asked whether it still lives
SUMMARY = ("(UID FLAGS RFC822.SIZE INTERNALDATE BODYSTRUCTURE "
           "BODY.PEEK[HEADER.FIELDS (FROM TO CC SUBJECT DATE MESSAGE-ID)])")


# ---------------------------------------------------------------- names and strings

def encode_folder(name):
    """Return name in the modified UTF-7 of RFC 3501, 5.1.3, as ASCII."""
    out, run = [], []

    def flush():
        if run:
            data = base64.b64encode("".join(run).encode("utf-16-be")).decode("ascii")
            out.append("&%s-" % data.rstrip("=").replace("/", ","))
            run.clear()

    for c in name:
        if " " <= c <= "~":
            flush()
            out.append("&-" if c == "&" else c)
        else:
            run.append(c)
    flush()
    return "".join(out)


def decode_folder(text):
    """Return the folder name that modified UTF-7 text stands for; what is not valid
    stays as it is."""
    out, rest = [], text
    while rest:
        before, amp, rest = rest.partition("&")
        out.append(before)
        if not amp:
            break
        coded, dash, after = rest.partition("-")
        if not dash:
            out.append(amp + rest)
            break
        try:
            data = coded.replace(",", "/")
            out.append(base64.b64decode(data + "=" * (-len(data) % 4), validate=True).decode("utf-16-be")
                       if coded else "&")
        except ValueError:
            out.append("&%s-" % coded)
        rest = after
    return "".join(out)


def quote(text):
    """Return ASCII text as an IMAP quoted string. imaplib sends arguments as they are,
    so every value goes through here."""
    if any(c in text for c in "\r\n\0"):
        raise ToolError("a value holds a line break or a NUL")
    return '"%s"' % text.replace("\\", "\\\\").replace('"', '\\"')


def folder_argument(name):
    """Return a folder name as an argument of a command."""
    if any(ord(c) < 32 or ord(c) == 127 for c in name):
        raise ToolError("a folder name must not hold control characters")
    return quote(encode_folder(name))


# ---------------------------------------------------------------- answers

def parse(parts):
    """Turn the data of an imaplib answer into values: lists, bytes, None for NIL.

    imaplib gives bytes for text and pairs (text ending in {n}, literal) where a literal
    was sent.
    """
    tokens = []
    for part in parts:
        if isinstance(part, tuple):
            _tokens(part[0][:part[0].rindex(b"{")], tokens)
            tokens.append((b"literal", part[1]))
        elif part is not None:
            _tokens(part, tokens)
    stack = [[]]
    for kind, value in tokens:
        if kind == b"(":
            stack.append([])
        elif kind == b")":
            if len(stack) > 1:
                done = stack.pop()
                stack[-1].append(done)
        else:
            stack[-1].append(None if kind == b"atom" and value.upper() == b"NIL" else value)
    while len(stack) > 1:
        done = stack.pop()
        stack[-1].append(done)
    return stack[0]


def _tokens(text, out):
    at, end = 0, len(text)
    while at < end:
        c = text[at:at + 1]
        if c in b" \r\n\t":
            at += 1
        elif c in b"()":
            out.append((c, c))
            at += 1
        elif c == b'"':
            value, at = _quoted(text, at + 1)
            out.append((b"string", value))
        else:
            start, depth = at, 0
            while at < end and (depth or text[at] not in b' ()"\r\n\t'):
                depth += (text[at] == 0x5B) - (text[at] == 0x5D and depth > 0)
                at += 1
            out.append((b"atom", text[start:at]))


def _quoted(text, at):
    value = bytearray()
    while at < len(text) and text[at] != 0x22:
        if text[at] == 0x5C and at + 1 < len(text):
            at += 1
        value.append(text[at])
        at += 1
    return bytes(value), at + 1


def fetch_items(data):
    """Return {uid: {item name: value}} from the data of a FETCH answer. Answers without
    a UID (flag changes that the server tells by itself) are left out."""
    out = {}
    for value in parse(data):
        if not isinstance(value, list):
            continue  # the sequence number
        items = {}
        for name, item in zip(value[::2], value[1::2]):
            if isinstance(name, bytes):
                items[name.upper().split(b"[")[0].decode("ascii", "replace")] = item
        uid = items.get("UID")
        if isinstance(uid, bytes) and uid.isdigit():
            out.setdefault(int(uid), {}).update(items)
    return out


def has_attachment(structure):
    """Tell whether a BODYSTRUCTURE holds a part marked as attachment."""
    if not isinstance(structure, list):
        return False
    if structure and isinstance(structure[0], bytes) and structure[0].lower() == b"attachment":
        return True
    return any(has_attachment(item) for item in structure)


# ---------------------------------------------------------------- search

def search_uids(conn, criteria):
    """Run UID SEARCH and return the UIDs in ascending order. criteria is a list of str;
    a pair ("text", value) is a value from the caller, quoted here. Values that are not
    ASCII go as literals under CHARSET UTF-8, since a quoted string may not hold them."""
    pieces, utf8 = [b""], False  # every second piece is a literal
    for item in criteria:
        if pieces[-1] not in (b"", b" "):
            pieces[-1] += b" "
        if isinstance(item, str):
            pieces[-1] += item.encode("ascii")
        elif item[1].isascii():
            pieces[-1] += quote(item[1]).encode("ascii")
        else:
            quote(item[1])  # refuses line breaks
            utf8, literal = True, item[1].encode("utf-8")
            pieces[-1] += b"{%d}\r\n" % len(literal)
            pieces += [literal, b" "]
    pieces[0] = b"UID SEARCH " + (b"CHARSET UTF-8 " if utf8 else b"") + pieces[0]
    pieces[-1] = pieces[-1].rstrip(b" ") + b"\r\n"
    return _exchange_search(conn, pieces)


def _exchange_search(conn, pieces):
    tag, uids = b"SRCH", []
    conn.send(tag + b" " + pieces[0])
    for n, piece in enumerate(pieces[1:], 1):
        if n % 2:  # a literal waits for the server's go-ahead
            while True:
                answer = conn.readline()
                if answer.startswith(b"+"):
                    break
                if answer.startswith(tag + b" "):
                    raise ToolError("the server refused the search: %s" % plain(answer[len(tag) + 1:], 200))
        conn.send(piece)
    while True:
        answer = conn.readline()
        if answer.startswith(b"* SEARCH"):
            uids += [int(n) for n in answer[8:].split() if n.isdigit()]
        elif answer.rstrip().endswith(b" EXISTS"):
            conn.untagged_responses.setdefault("EXISTS", []).append(answer.split()[1])
        elif answer.startswith(b"* BYE"):
            raise conn.abort("the server closed the connection")
        elif answer.startswith(tag + b" "):
            if answer[len(tag) + 1:].upper().startswith(b"OK"):
                return sorted(set(uids))
            raise ToolError("the server refused the search: %s" % plain(answer[len(tag) + 1:], 200))


# ---------------------------------------------------------------- the session

class Mailbox:
    """One IMAP session that is opened when it is first needed and opened again when it
    was dropped. Used by one thread."""

    def __init__(self, settings, log):
        self._settings = settings
        self._log = log
        self._conn = None
        self._used = 0.0
        self._selected = None
        self.exists = 0  # messages in the selected folder, as of its selection

    def call(self, work, repeatable=True):
        """Return work(connection). A dropped connection is opened again; the work is
        repeated then only when that cannot do anything twice. Raises ToolError."""
        for attempt in (1, 2):
            conn = self._connect()
            try:
                result = work(conn)
                self._used = time.monotonic()
                return result
            except imaplib.IMAP4.abort as e:
                self.close()
                if attempt == 2 or not repeatable:
                    raise ToolError(self._dropped(e, repeatable)) from None
                self._log("the IMAP connection was dropped; opening it again")
            except imaplib.IMAP4.readonly:
                raise ToolError("the server opens this folder for reading only") from None
            except imaplib.IMAP4.error as e:
                raise ToolError("the IMAP server refused: %s" % plain(e, 300)) from None
            except OSError as e:
                self.close()
                if attempt == 2 or not repeatable:
                    raise ToolError(self._dropped(e, repeatable)) from None
                self._log("the IMAP connection failed; opening it again")

    @staticmethod
    def _dropped(error, repeatable):
        text = "the IMAP connection was dropped: %s" % (plain(error, 200) or type(error).__name__)
        return text if repeatable else text + "; whether the change was made is not known, look before you repeat it"

    def _connect(self):
        if self._conn is not None and time.monotonic() - self._used > IDLE_CHECK:
            try:
                self._conn.noop()
                self._used = time.monotonic()
            except (imaplib.IMAP4.error, OSError):
                self.close()
        if self._conn is None:
            try:
                self._conn = open_imap(self._settings)
            except (ConnectError, ConfigError) as e:
                raise ToolError(str(e)) from None
            self._selected = None
            self._used = time.monotonic()
        return self._conn

    def close(self):
        """Drop the connection."""
        conn, self._conn, self._selected = self._conn, None, None
        if conn is not None:
            conn.shutdown()

    def logout(self):
        """End the session politely, without waiting for long."""
        if self._conn is not None:
            try:
                self._conn.wait(2)
                self._conn.logout()
            except (imaplib.IMAP4.error, OSError):
                pass
            self.close()

    def select(self, conn, folder, write=False):
        """Make folder the current one, afresh, so that counts are those of now."""
        try:
            status, data = conn.select(folder_argument(folder), readonly=not write)
        except imaplib.IMAP4.readonly:
            raise ToolError("the server opens folder \"%s\" for reading only" % folder) from None
        if status != "OK":
            raise ToolError("there is no folder \"%s\": %s" % (folder, plain(data[-1], 200)))
        self.exists = int(data[-1]) if data and data[-1] and data[-1].isdigit() else 0

    def folders(self, conn):
        """Return [{"name", "flags" (lower case, without backslash), "separator"}]."""
        pattern = "* RETURN (SPECIAL-USE)" if "SPECIAL-USE" in conn.capabilities and \
            "LIST-EXTENDED" in conn.capabilities else "*"
        status, data = conn.list('""', pattern)
        ok(status, data)
        values = parse([part if isinstance(part, tuple) else (part or b"") + b" " for part in data])
        out = []
        for flags, separator, name in zip(values[::3], values[1::3], values[2::3]):
            if isinstance(flags, list) and isinstance(name, bytes):
                out.append({"name": decode_folder(name.decode("utf-8", "replace")),
                            "flags": [f.decode("ascii", "replace").lstrip("\\").lower() for f in flags if f],
                            "separator": separator.decode("ascii", "replace") if separator else ""})
        return out

    def special(self, conn, use, names):
        """Return the folder that the server marks for use ("sent", "trash", "drafts"),
        else the first of names that exists, else None."""
        folders = self.folders(conn)
        for folder in folders:
            if use in folder["flags"]:
                return folder["name"]
        by_name = {f["name"].lower(): f["name"] for f in folders if "noselect" not in f["flags"]}
        for name in names:
            for variant in (name.lower(), "inbox." + name.lower(), "inbox/" + name.lower()):
                if variant in by_name:
                    return by_name[variant]
        return None


def ok(status, data):
    """Raise ToolError with the server's words unless status is OK."""
    if status != "OK":
        words = plain(data[-1], 300) if data and data[-1] else "no reason given"
        raise ToolError("the IMAP server refused: %s" % words)
