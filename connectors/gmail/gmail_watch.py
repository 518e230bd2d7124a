"""The watcher: tells the client of new mail while the connector runs.

Every 60 seconds (GMAIL_POLL_SECONDS) it asks users.history.list what came into the inbox
since the last look. For each new message the client gets

    {"jsonrpc": "2.0", "method": "event/new_email", "params":
        {"id", "thread", "message_id", "from", "subject", "date"}}

Messages that were there at the start are not announced; those that came while there was
no network are, once, when it is back. Gmail forgets history after a week or so; then the
watch starts anew (https://developers.google.com/gmail/api/guides/sync).
"""

import email_message
import gmail_message
import google_watch
from google_http import GoogleError

MAX_PAGES = 20   # of history for one look


class Watcher(google_watch.Watcher):
    """Announces new messages in the inbox."""

    watched = "for new mail"
    _since = None  # the historyId up to which everything was announced
    _told = ()     # what was announced of a look that failed half way

    def look(self):
        """Announce what came since the last look; the first one only remembers where it is."""
        if self._since is None:
            self._since = str(self.client.call("GET", "/gmail/v1/users/me/profile")["historyId"])
            return
        try:
            found, latest = self._history()
        except GoogleError as e:
            if e.kind != "missing":
                raise
            self.server.log("Gmail has forgotten the history since the last look; the watch starts anew")
            self._since = None
            return self.look()
        for ident in self.burst([i for i in found if i not in self._told]):
            self._announce(ident)
            self._told += (ident,)
        self._since, self._told = latest, ()

    def _history(self):
        found, page, latest = {}, None, self._since
        for _ in range(MAX_PAGES):
            answer = self.client.call("GET", "/gmail/v1/users/me/history", {
                "startHistoryId": self._since, "historyTypes": "messageAdded", "labelId": "INBOX", "maxResults": 500,
                "pageToken": page})
            for record in answer.get("history") or ():
                for added in record.get("messagesAdded") or ():
                    message = added.get("message") or {}
                    labels = message.get("labelIds") or ["INBOX"]
                    if message.get("id") and "INBOX" in labels and "DRAFT" not in labels:
                        found[str(message["id"])] = None
            latest, page = str(answer.get("historyId") or latest), answer.get("nextPageToken")
            if not page:
                break
        return list(found), latest

    def _announce(self, ident):
        try:
            message = self.client.call("GET", "/gmail/v1/users/me/messages/" + ident, {
                "format": "metadata", "metadataHeaders": ["From", "Subject", "Date", "Message-ID"]})
        except GoogleError as e:
            if e.kind == "missing":
                return  # it was deleted meanwhile
            raise
        head = gmail_message.headers(message.get("payload") or {})
        self.server.notify("event/new_email", {
            "id": ident, "thread": message.get("threadId"),
            "message_id": email_message.header(head, "Message-ID", 400),
            "from": email_message.header(head, "From", 300),
            "subject": email_message.header(head, "Subject", 300) or "(no subject)",
            "date": email_message.header(head, "Date", 100)})
