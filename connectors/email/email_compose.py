"""Writing messages: addresses, headers, bodies and attachments.

Every value that becomes a header is checked for line breaks first, so a caller cannot
add headers of its own; addresses are checked one by one. Attachments come from the one
folder that the user has named, and from nowhere else.
"""

import email.message
import email.policy
import email.utils
import html
import mimetypes
import os
import re
import stat
from email.headerregistry import Address

import email_message
from mcp_stdio import ToolError

MAX_ATTACHMENTS = 20 << 20  # bytes in all; base64 adds a third, and many servers stop at 25 to 30 MiB
MAX_QUOTED = 10000          # characters of the original that a reply quotes
_ADDRESS = re.compile(r"^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*\.?$")


def clean_header(name, value):
    """Return value, or raise ToolError when it could end the header it is put into."""
    if any(ord(c) < 32 and c != "\t" or ord(c) == 127 or c in "\x85\u2028\u2029" for c in value):
        raise ToolError("%s must not hold line breaks or control characters" % name)
    return value.replace("\t", " ").strip()


def address(name, text):
    """Return the Address in text: "ada@example.org" or "Ada Lovelace <ada@example.org>"."""
    text = clean_header(name, text)
    match = re.match(r"^(.*?)\s*<([^<>]*)>$", text)
    shown, spec = (match.group(1).strip().strip('"'), match.group(2).strip()) if match else ("", text)
    local, at, domain = spec.rpartition("@")
    try:
        domain = domain if domain.isascii() else domain.encode("idna").decode("ascii")
    except UnicodeError:
        at = ""
    spec = local + at + domain
    if not _ADDRESS.match(spec):
        raise ToolError("%s: \"%s\" is not an email address" % (name, text[:200]))
    return Address(display_name=shown.replace('\\"', '"'), addr_spec=spec)


def addresses(name, values):
    """Return the Addresses of a list of texts."""
    return [address(name, value) for value in values]


def build(settings, args, attachments=()):
    """Return an EmailMessage without Bcc from the arguments to, cc, subject, body, html."""
    message = email.message.EmailMessage(policy=email.policy.SMTP)
    sender = address("EMAIL_FROM", settings.sender)
    message["From"] = sender
    for header in ("to", "cc"):
        if args.get(header):
            message[header.title()] = args[header]
    message["Subject"] = clean_header("subject", args.get("subject", ""))
    message["Date"] = email.utils.formatdate(localtime=True)
    message["Message-ID"] = email.utils.make_msgid(domain=sender.domain or "localhost")
    message.set_content(args.get("body", ""), charset="utf-8")
    if args.get("html"):
        message.add_alternative(args["html"], subtype="html", charset="utf-8")
    for path, data in attachments:
        kind = mimetypes.guess_type(path, strict=False)
        main, _, sub = (kind[0] if kind[0] and not kind[1] else "application/octet-stream").partition("/")
        if main in ("message", "multipart"):
            main, sub = "application", "octet-stream"
        message.add_attachment(data, maintype=main, subtype=sub, filename=os.path.basename(path))
    return message


def recipients(args):
    """Return the bare addresses that a message goes to, each once."""
    out = []
    for header in ("to", "cc", "bcc"):
        for item in args.get(header) or ():
            if item.addr_spec not in out:
                out.append(item.addr_spec)
    if not out:
        raise ToolError("the message has no recipient")
    return out


def reply_arguments(settings, original, args):
    """Return the arguments of build for a reply to original, and its threading headers."""
    own = {address("EMAIL_FROM", settings.sender).addr_spec.lower(), settings.username.lower()}
    back = email_message.addresses(original, "Reply-To") or email_message.addresses(original, "From")
    to = _others(back, own) or _others(email_message.addresses(original, "To"), own) or _others(back, set())
    if not to:
        raise ToolError("the message names nobody to reply to")
    cc = []
    if args.get("reply_all"):
        seen = own | {a.addr_spec.lower() for a in to}
        cc = _others(email_message.addresses(original, "To", "Cc"), seen)
    subject = email_message.header(original, "Subject", 500)
    if not re.match(r"(?i)re\s*:", subject):
        subject = "Re: " + subject
    body = args["body"]
    if args.get("quote", True):
        body += _quoted(original)
    ident = clean_ident(original.get("Message-ID"))
    chain = [i for i in re.findall(r"<[^<>\s]+>", str(original.get("References") or original.get("In-Reply-To") or ""))]
    threading = {}
    if ident:
        threading = {"In-Reply-To": ident, "References": " ".join((chain[-20:] if ident not in chain else chain[-20:-1]) + [ident])}
    return {"to": to, "cc": cc, "subject": subject, "body": body}, threading


def clean_ident(value):
    """Return the message identifier in a header value, or an empty string."""
    match = re.search(r"<[!-~]{1,400}>", str(value or ""))
    return match.group(0) if match else ""


def _others(pairs, own):
    out, seen = [], set(own)
    for shown, spec in pairs:
        if spec.lower() in seen:
            continue
        try:
            out.append(address("recipient", "%s <%s>" % (shown.replace("<", "").replace(">", ""), spec)))
            seen.add(spec.lower())
        except ToolError:
            continue  # an address that cannot be written to
    return out


def _quoted(original):
    text = email_message.body(original)
    if len(text) > MAX_QUOTED:
        text = text[:MAX_QUOTED] + "\n[...]"
    who = email_message.header(original, "From", 200)
    when = email_message.header(original, "Date", 100)
    return "\n\nOn %s, %s wrote:\n%s\n" % (when, who, "\n".join("> " + line for line in text.strip().split("\n")))


def html_of(text):
    """Return text as a minimal HTML body."""
    return "<html><body><p>%s</p></body></html>" % html.escape(text).replace("\n", "<br>\n")


# ---------------------------------------------------------------- files

def attachments_folder(settings):
    if not settings.attachments_dir:
        raise ToolError("no attachments folder is set (EMAIL_ATTACHMENTS_DIR), so no file can be read or saved")
    folder = os.path.realpath(os.path.expanduser(settings.attachments_dir))
    if not os.path.isdir(folder):
        raise ToolError("the attachments folder does not exist")
    return folder


def load_attachments(settings, names):
    """Return [(name, bytes)] of files in the attachments folder."""
    if not names:
        return []
    folder, out, total = attachments_folder(settings), [], 0
    for name in names:
        path = os.path.realpath(os.path.join(folder, clean_header("attachments", name)))
        if os.path.commonpath([folder, path]) != folder or path == folder:
            raise ToolError("attachment \"%s\" is not inside the attachments folder" % name[:200])
        try:
            fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
                         | getattr(os, "O_BINARY", 0))
        except OSError as e:
            raise ToolError("attachment \"%s\" cannot be read: %s" % (name[:200], e.strerror)) from None
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise ToolError("attachment \"%s\" is not a file" % name[:200])
        with os.fdopen(fd, "rb") as f:
            data = f.read(MAX_ATTACHMENTS - total + 1)
        total += len(data)
        if total > MAX_ATTACHMENTS:
            raise ToolError("the attachments are larger than %d MiB in all" % (MAX_ATTACHMENTS >> 20))
        out.append((os.path.basename(path), data))
    return out


def safe_name(name, fallback):
    """Return a file name without path, control characters and names that some systems reserve."""
    name = re.sub(r"[\\/:*?\"<>|]", "_", "".join(c if c.isprintable() else "_" for c in name)).strip(" .")
    stem, dot, end = name.rpartition(".")
    if dot and len(end) <= 10:
        name = stem[:100] + dot + end
    name = name.encode("utf-8", "ignore")[:180].decode("utf-8", "ignore").strip(" .")
    if not name or re.match(r"(?i)^(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)", name):
        return "_" + name if name else fallback
    return name


def store_attachment(settings, name, data):
    """Write data as a new file in the attachments folder; never over a file that is there.
    Returns the name that it got."""
    folder = attachments_folder(settings)
    stem, ext = os.path.splitext(name)
    for n in range(1, 1000):
        chosen = name if n == 1 else "%s (%d)%s" % (stem, n, ext)
        path = os.path.join(folder, chosen)
        try:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        except FileExistsError:
            continue
        except OSError as e:
            raise ToolError("\"%s\" cannot be written: %s" % (chosen, e.strerror)) from None
        try:
            with os.fdopen(fd, "wb") as f:
                f.write(data)
        except OSError as e:
            os.unlink(path)
            raise ToolError("\"%s\" cannot be written: %s" % (chosen, e.strerror)) from None
        return chosen
    raise ToolError("there are too many files named \"%s\" already" % name)
