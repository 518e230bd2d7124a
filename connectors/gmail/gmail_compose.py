"""Writing messages: addresses, headers, bodies and attachments.

Every value that becomes a header is checked for line breaks first, so a caller cannot add
headers of its own; addresses are checked one by one. Attachments come from the folder for
files and from nowhere else. Sender, date and Message-ID are left to Gmail, which knows
the account's name.
"""

import email.message
import email.policy
import mimetypes
import re
from email.headerregistry import Address

import email_message
from mcp_stdio import ToolError

MAX_ATTACHMENTS = 25 << 20  # bytes in all; base64 adds a third, and Gmail takes messages of 35 MiB
MAX_MESSAGE = 35 << 20      # bytes; the upload limit of users.messages.send
MAX_QUOTED = 10000          # characters of the original that a reply quotes
_ADDRESS = re.compile(r"^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*\.?\Z")


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


def build(folder, args, original_headers=None):
    """Return the bytes of a message from the arguments to, cc, bcc, sender, subject, body,
    html and attachments; to, cc and bcc are texts or Addresses."""
    message = email.message.EmailMessage(policy=email.policy.SMTP.clone(cte_type="7bit"))
    if args.get("sender"):
        message["From"] = address("sender", args["sender"])
    for header in ("to", "cc", "bcc"):
        if args.get(header):
            message[header.title()] = [a if isinstance(a, Address) else address(header, a) for a in args[header]]
    message["Subject"] = clean_header("subject", args.get("subject", ""))
    for name, value in (original_headers or {}).items():
        message[name] = value
    message.set_content(args.get("body", ""), charset="utf-8")
    if args.get("html"):
        message.add_alternative(args["html"], subtype="html", charset="utf-8")
    for name, data in _attachments(folder, args.get("attachments") or ()):
        kind = mimetypes.guess_type(name, strict=False)
        main, _, sub = (kind[0] if kind[0] and not kind[1] else "application/octet-stream").partition("/")
        if main in ("message", "multipart"):
            main, sub = "application", "octet-stream"
        message.add_attachment(data, maintype=main, subtype=sub, filename=name)
    data = message.as_bytes()
    if len(data) > MAX_MESSAGE:
        raise ToolError("the message has %d bytes; Gmail takes %d at most" % (len(data), MAX_MESSAGE))
    return data


def _attachments(folder, names):
    total = 0
    for name in names:
        file, _, base = folder.open(name)
        with file:
            data = file.read(MAX_ATTACHMENTS - total + 1)
        total += len(data)
        if total > MAX_ATTACHMENTS:
            raise ToolError("the attachments are larger than %d MiB in all" % (MAX_ATTACHMENTS >> 20))
        yield base, data


def has_recipient(args):
    """Raise ToolError unless somebody gets the message."""
    if not any(args.get(header) for header in ("to", "cc", "bcc")):
        raise ToolError("the message has no recipient")


def reply_arguments(own, original, text, args):
    """Return the arguments of build and the threading headers for a reply. own is the
    account's address, original the Message with the headers, text its body."""
    own = {own.lower()}
    back = email_message.addresses(original, "Reply-To") or email_message.addresses(original, "From")
    to = _others(back, own) or _others(email_message.addresses(original, "To"), own) or _others(back, set())
    if not to:
        raise ToolError("the message names nobody to reply to")
    out = {"to": to, "body": args["body"], "attachments": args.get("attachments")}
    if args.get("reply_all"):
        seen = own | {a.addr_spec.lower() for a in to}
        out["cc"] = _others(email_message.addresses(original, "To", "Cc"), seen)
    out["subject"] = email_message.header(original, "Subject", 500)
    if not re.match(r"(?i)re\s*:", out["subject"]):
        out["subject"] = "Re: " + out["subject"]
    if args.get("quote", True):
        out["body"] += _quoted(original, text)
    return out, _threading(original)


def _threading(original):
    match = re.search(r"<[!-~]{1,400}>", str(original.get("Message-ID") or ""))
    if not match:
        return {}
    ident = match.group(0)
    chain = re.findall(r"<[!-;=?-~]{1,400}>", str(original.get("References") or original.get("In-Reply-To") or ""))
    return {"In-Reply-To": ident, "References": " ".join([i for i in chain if i != ident][-20:] + [ident])}


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


def _quoted(original, text):
    if len(text) > MAX_QUOTED:
        text = text[:MAX_QUOTED] + "\n[...]"
    who = email_message.header(original, "From", 200)
    when = email_message.header(original, "Date", 100)
    return "\n\nOn %s, %s wrote:\n%s\n" % (when, who, "\n".join("> " + line for line in text.strip().split("\n")))
