"""The Gmail part of the double: one mailbox of real RFC 822 messages, kept in memory.

https://developers.google.com/gmail/api/reference/rest
"""

import base64
import email
import email.header
import email.policy
import email.utils

from google_double import CLOUD, EMAIL, Refusal, bad, not_found, page

SYSTEM = ["INBOX", "SENT", "DRAFT", "TRASH", "SPAM", "UNREAD", "STARRED", "IMPORTANT", "CATEGORY_PERSONAL"]
INLINE = 100000  # bytes; longer text comes as an attachmentId


def encode(data):
    return base64.urlsafe_b64encode(data).decode("ascii")


def readable(value):
    return str(email.header.make_header(email.header.decode_header(str(value)))) if value is not None else ""


class Gmail:
    prefix, service, title = "/gmail/v1/", "gmail.googleapis.com", "Gmail API"

    def __init__(self):
        self.messages, self.drafts, self.history = {}, {}, []
        self.labels = {name: {"id": name, "name": name, "type": "system"} for name in SYSTEM}
        self.count, self.oldest = 100, 1
        me = "/gmail/v1/users/me"
        one = "([^/]+)"
        self.routes = [
            ("GET", me + "/profile", self.profile), ("GET", me + "/history", self.list_history),
            ("GET", me + "/labels", self.list_labels), ("POST", me + "/labels", self.create_label),
            ("GET", me + "/labels/" + one, self.get_label), ("PATCH", me + "/labels/" + one, self.patch_label),
            ("DELETE", me + "/labels/" + one, self.delete_label),
            ("GET", me + "/messages", self.list_messages), ("POST", me + "/messages/send", self.send),
            ("POST", me + "/messages/batchModify", self.batch_modify), ("GET", me + "/messages/" + one, self.get_message),
            ("POST", me + "/messages/" + one + "/modify", self.modify),
            ("POST", me + "/messages/" + one + "/trash", lambda i, q, b: self.relabel(i, ["TRASH"], ["INBOX"])),
            ("POST", me + "/messages/" + one + "/untrash", lambda i, q, b: self.relabel(i, [], ["TRASH"])),
            ("GET", me + "/messages/" + one + "/attachments/" + one, self.attachment),
            ("GET", me + "/threads/" + one, self.get_thread),
            ("GET", me + "/drafts", self.list_drafts), ("POST", me + "/drafts", self.create_draft),
            ("POST", me + "/drafts/send", self.send_draft), ("GET", me + "/drafts/" + one, self.get_draft),
            ("PUT", me + "/drafts/" + one, self.update_draft), ("DELETE", me + "/drafts/" + one, self.delete_draft)]

    @staticmethod
    def accepts(method, path, granted):
        narrow = ["gmail.readonly"] if method == "GET" else ["gmail.send"] if path.endswith("/messages/send") else \
            ["gmail.labels"] if "/labels" in path else []
        return "https://mail.google.com/" in granted or any(CLOUD + s in granted for s in ["gmail.modify"] + narrow)

    # -- the mailbox

    def add(self, data, labels=("INBOX", "UNREAD"), thread=None):
        """Put a message into the mailbox; return its id."""
        self.count += 1
        ident = "18c%013x" % self.count
        self.messages[ident] = {"id": ident, "threadId": thread or ident, "labels": list(labels), "data": data, "at": self.count}
        self.history.append({"id": str(self.count), "messages": [{"id": ident, "threadId": thread or ident}], "messagesAdded": [
            {"message": {"id": ident, "threadId": thread or ident, "labelIds": list(labels)}}]})
        return ident

    def find(self, ident):
        if ident not in self.messages:
            raise not_found()
        return self.messages[ident]

    def shown(self, message, kind):
        out = {"id": message["id"], "threadId": message["threadId"], "labelIds": message["labels"], "snippet": "&lt;snippet&gt; it&#39;s",
               "sizeEstimate": len(message["data"]), "historyId": str(message["at"]), "internalDate": "1767261600000"}
        if kind == "raw":
            return dict(out, raw=encode(message["data"]))
        if kind != "minimal":
            out["payload"] = self.part(email.message_from_bytes(message["data"], policy=email.policy.compat32), "", kind, [0])
        return out

    def part(self, part, ident, kind, counter):
        data = b"" if part.is_multipart() else part.get_payload(decode=True) or b""
        out = {"partId": ident, "mimeType": part.get_content_type(), "filename": readable(part.get_filename() or ""),
               "headers": [{"name": k, "value": readable(v)} for k, v in part.items()], "body": {"size": len(data)}}
        if kind == "metadata":
            return {k: out[k] for k in ("mimeType", "headers")}
        if part.is_multipart():
            out["parts"] = [self.part(p, ("%s.%d" % (ident, n)).lstrip("."), kind, counter) for n, p in enumerate(part.get_payload())]
        elif out["filename"] or part.get_content_maintype() != "text" or len(data) > INLINE:
            out["body"]["attachmentId"] = "ANGjdJ_%s" % (ident.replace(".", "-") or "whole")
        else:
            out["body"]["data"] = encode(data)
        return out

    def keep(self, body, labels, draft=False):
        about = body.get("message", {}) if draft else body
        if "_content" in body:
            kind, data = body["_content"]
            if kind != "message/rfc822":
                raise bad("Media type '%s' is not supported." % kind, "badContent")
        elif "raw" in about:
            data = base64.urlsafe_b64decode(about["raw"])
        else:
            raise bad("'raw' RFC822 payload message string or uploading message via /upload/* URL required")
        head = email.message_from_bytes(data, policy=email.policy.default)
        if not draft and not any(head[h] for h in ("To", "Cc", "Bcc")):
            raise bad("Recipient address required")
        return self.add(data, labels, about.get("threadId"))

    # -- methods

    def profile(self, _query, _body):
        return {"emailAddress": EMAIL, "messagesTotal": len(self.messages), "historyId": str(self.count),
                "threadsTotal": len({m["threadId"] for m in self.messages.values()})}

    def list_history(self, query, _body):
        since = query["startHistoryId"][0]
        if not since.isdigit() or int(since) < self.oldest:
            raise not_found()
        found = [h for h in self.history if int(h["id"]) > int(since)]
        if "labelId" in query:
            found = [h for h in found if query["labelId"][0] in h["messagesAdded"][0]["message"]["labelIds"]]
        items, more = page(found, query, 100, 500)
        return dict({"historyId": str(self.count)}, **more, **({"history": items} if items else {}))

    def list_labels(self, _query, _body):
        return {"labels": list(self.labels.values())}

    def get_label(self, ident, _query, _body):
        if ident not in self.labels:
            raise not_found()
        inside = [m for m in self.messages.values() if ident in m["labels"]]
        return dict(self.labels[ident], messagesTotal=len(inside), messagesUnread=len([m for m in inside if "UNREAD" in m["labels"]]))

    def _free(self, name):
        if name.lower() in [x["name"].lower() for x in self.labels.values()]:
            raise Refusal(409, "Label name exists or conflicts", "aborted", "ABORTED")

    def create_label(self, _query, body):
        self._free(body["name"])
        ident = "Label_%d" % (len(self.labels) + 1)
        self.labels[ident] = {"id": ident, "name": body["name"], "type": "user", "messageListVisibility": "show"}
        return self.labels[ident]

    def patch_label(self, ident, _query, body):
        if self.labels.get(ident, {}).get("type") != "user":
            raise bad("Cannot update a system label") if ident in self.labels else not_found()
        self._free(body["name"])
        self.labels[ident]["name"] = body["name"]
        return self.labels[ident]

    def delete_label(self, ident, _query, _body):
        if self.labels.get(ident, {}).get("type") != "user":
            raise bad("Invalid delete request") if ident in self.labels else not_found("Requested entity was not found.")
        del self.labels[ident]

    def matches(self, message, words):
        head = email.message_from_bytes(message["data"], policy=email.policy.compat32)
        for word in words.split():
            key, colon, value = word.partition(":")
            if colon and key in ("from", "to", "subject"):
                if value.lower() not in readable(head.get(key)).lower():
                    return False
            elif word == "is:unread":
                if "UNREAD" not in message["labels"]:
                    return False
            elif word.encode().lower() not in message["data"].lower():
                return False
        return True

    def list_messages(self, query, _body):
        wanted, words = set(query.get("labelIds", ())), query.get("q", [""])[0]
        if wanted - set(self.labels):
            raise bad("Invalid label: " + ", ".join(wanted - set(self.labels)))
        hidden = set() if query.get("includeSpamTrash") == ["true"] else {"SPAM", "TRASH"}
        found = [m for m in reversed(list(self.messages.values())) if wanted <= set(m["labels"]) and not hidden & set(m["labels"])
                 and self.matches(m, words)]
        items, more = page(found, query, 100, 500)
        out = dict({"resultSizeEstimate": len(found)}, **more)
        return dict(out, messages=[{"id": m["id"], "threadId": m["threadId"]} for m in items]) if items else out

    def get_message(self, ident, query, _body):
        return self.shown(self.find(ident), query.get("format", ["full"])[0])

    def attachment(self, ident, name, _query, _body):
        message = email.message_from_bytes(self.find(ident)["data"], policy=email.policy.compat32)
        for step in name.replace("ANGjdJ_", "").split("-"):
            message = message if step == "whole" else message.get_payload(int(step))
        data = message.get_payload(decode=True)
        return {"size": len(data), "data": encode(data)}

    def get_thread(self, ident, query, _body):
        inside = [m for m in self.messages.values() if m["threadId"] == ident]
        if not inside:
            raise not_found()
        return {"id": ident, "historyId": str(self.count), "messages": [self.shown(m, query.get("format", ["full"])[0]) for m in inside]}

    def relabel(self, ident, add, remove):
        if set(add + remove) - set(self.labels):
            raise bad("Invalid label: " + ", ".join(set(add + remove) - set(self.labels)))
        message = self.find(ident)
        message["labels"] = [x for x in message["labels"] if x not in remove] + [x for x in add if x not in message["labels"]]
        return self.shown(message, "minimal")

    def modify(self, ident, _query, body):
        return self.relabel(ident, body.get("addLabelIds", []), body.get("removeLabelIds", []))

    def batch_modify(self, _query, body):
        for ident in body["ids"]:
            if ident in self.messages:  # unknown ones are passed over
                self.relabel(ident, body.get("addLabelIds", []), body.get("removeLabelIds", []))

    def send(self, _query, body):
        message = self.messages[self.keep(body, ["SENT"])]
        return {"id": message["id"], "threadId": message["threadId"], "labelIds": ["SENT"]}

    def _draft(self, ident, message):
        self.drafts[ident] = message
        shown = self.messages[message]
        return {"id": ident, "message": {"id": message, "threadId": shown["threadId"], "labelIds": ["DRAFT"]}}

    def create_draft(self, _query, body):
        return self._draft("r-%d" % (7000 + self.count), self.keep(body, ["DRAFT"], draft=True))

    def _known(self, ident):
        if ident not in self.drafts:
            raise not_found()
        return self.drafts[ident]

    def get_draft(self, ident, query, _body):
        return {"id": ident, "message": self.shown(self.find(self._known(ident)), query.get("format", ["full"])[0])}

    def list_drafts(self, query, _body):
        items, more = page([d for d in self.drafts if self.matches(self.messages[self.drafts[d]], query.get("q", [""])[0])], query, 100, 500)
        return dict({"drafts": [{"id": i, "message": {"id": self.drafts[i]}} for i in items], "resultSizeEstimate": len(items)}, **more)

    def update_draft(self, ident, _query, body):
        del self.messages[self._known(ident)]
        return self._draft(ident, self.keep(body, ["DRAFT"], draft=True))

    def send_draft(self, _query, body):
        message = self.find(self._known(body["id"]))
        del self.drafts[body["id"]]
        return self.relabel(message["id"], ["SENT"], ["DRAFT"])

    def delete_draft(self, ident, _query, _body):
        del self.messages[self._known(ident)], self.drafts[ident]
