"""Reading what users.messages.get gives: headers, text and attachments of a payload.

A payload is a tree of parts: partId, mimeType, filename, headers, body (size, and data in
base64url or an attachmentId) and parts. Text of other charsets than UTF-8 is mostly
given in UTF-8, whatever its header says; so that is tried first.
"""

import base64
import binascii
import email.message
import re

import email_message
from mcp_stdio import ToolError

MAX_DEPTH = 50  # of nested parts; real mail has few


def headers(payload):
    """Return an email.message.Message that holds the headers of a payload or part."""
    out = email.message.Message()
    for item in payload.get("headers") or ():
        if isinstance(item, dict) and isinstance(item.get("name"), str) and item["name"].isprintable():
            out[item["name"]] = str(item.get("value", ""))
    return out


def parts(payload):
    """Return (text parts, attachments): two lists of leaf parts in document order."""
    texts, attached = [], []

    def walk(part, depth):
        inner = [p for p in part.get("parts") or () if isinstance(p, dict)]
        kind = str(part.get("mimeType", "")).lower()
        if inner and depth < MAX_DEPTH:
            for p in inner:
                walk(p, depth + 1)
        elif kind.startswith("multipart/"):
            return
        elif part.get("filename") or not kind.startswith("text/"):
            attached.append(part)
        else:
            texts.append(part)
    walk(payload, 0)
    return texts, attached


def decoded(data):
    """Return the bytes of base64url text, with or without its padding."""
    text = re.sub(r"[\s=]", "", data if isinstance(data, str) else "")
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        raise ToolError("Gmail sent data that cannot be decoded") from None


def body(payload, kind, fetch):
    """Return the message as text; kind "html" returns the HTML part as it is, when there is
    one. fetch(attachment id) returns the bytes of a part that did not come along."""
    texts, _ = parts(payload)
    plain = [p for p in texts if p.get("mimeType") == "text/plain"]
    rich = [p for p in texts if p.get("mimeType") == "text/html"]
    if kind == "html" and rich:
        return "\n".join(_text(p, fetch) for p in rich)
    if any((p.get("body") or {}).get("size") for p in plain) or not rich:
        return "\n".join(_text(p, fetch) for p in plain or texts).replace("\r\n", "\n")
    return "\n".join(email_message.html_to_text(_text(p, fetch)) for p in rich)


def _text(part, fetch):
    inside = part.get("body") or {}
    data = decoded(inside["data"]) if inside.get("data") else fetch(inside["attachmentId"]) if inside.get("attachmentId") else b""
    charset = headers(part).get_content_charset() or ""
    if charset.startswith(("iso-2022", "utf-16", "utf-7", "hz")) and (b"\x1b" in data or b"\0" in data or charset in ("utf-7", "hz")):
        return email_message.to_text(data, charset)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return email_message.to_text(data, charset)


def attachment(number, part):
    """Return the description of an attachment."""
    return {"index": number, "filename": email_message.decode(part.get("filename") or "")[:200],
            "type": str(part.get("mimeType", ""))[:100], "size": size(part)}


def size(part):
    """Return the bytes that a part is said to have."""
    value = (part.get("body") or {}).get("size")
    return value if isinstance(value, int) else 0


def summary(message):
    """Return the line of a list for a message in the formats metadata and full."""
    head = headers(message.get("payload") or {})
    labels = [str(label) for label in message.get("labelIds") or ()]
    return {"id": message.get("id"), "thread": message.get("threadId"), "from": email_message.header(head, "From", 200),
            "to": email_message.header(head, "To", 200), "subject": email_message.header(head, "Subject", 300),
            "date": email_message.header(head, "Date", 60), "unread": "UNREAD" in labels, "labels": labels[:50],
            "snippet": email_message.html_to_text(str(message.get("snippet", "")))[:200],
            "size": message.get("sizeEstimate")}
