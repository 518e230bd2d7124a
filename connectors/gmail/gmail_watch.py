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
from google_http import GoogleError
from mcp_stdio import ToolError

MAX_BURST = 20   # messages announced one by one; the rest of a burst is counted
MAX_PAGES = 20   # of history for one look
RETRY_SECONDS = (5, 15, 60, 300)  # after a failure; the last one is repeated
FINAL = ("signin", "client", "scope", "disabled", "setting", "denied")  # what another try does not mend


class Watcher:
    """Run watch() in a thread. client is the google_api.Client, server the mcp_stdio.Server to notify."""

    def __init__(self, client, server, seconds):
        self._client, self._server, self._seconds = client, server, seconds
        self._since = None  # the historyId up to which everything was announced

    def watch(self):
        """Watch until the server stops; never raises."""
        failures = 0
        self._server.initialized.wait()
        while not self._server.stopping.is_set():
            pause = self._seconds
            try:
                self.look()
                failures = 0
            except (ToolError, ValueError, TypeError, AttributeError) as e:
                kind = getattr(e, "kind", "")
                if kind in FINAL:
                    self._server.log("watching for new mail: %s; new mail is not announced until the connector is "
                                     "started again" % e)
                    return
                pause = max(self._seconds if kind == "busy" else 0, RETRY_SECONDS[min(failures, len(RETRY_SECONDS) - 1)])
                failures += 1
                self._server.log("watching for new mail: %s; next try in %d s" % (str(e) or type(e).__name__, pause))
            self._server.stopping.wait(pause)

    def look(self):
        """Announce what came since the last look; the first one only remembers where it is."""
        if self._since is None:
            self._since = str(self._client.call("GET", "/gmail/v1/users/me/profile")["historyId"])
            self._server.log("watching for new mail (every %d s)" % self._seconds)
            return
        try:
            found, latest = self._history()
        except GoogleError as e:
            if e.kind != "missing":
                raise
            self._server.log("Gmail has forgotten the history since the last look; the watch starts anew")
            self._since = None
            return self.look()
        if len(found) > MAX_BURST:
            self._server.log("%d new messages at once; the last %d are announced" % (len(found), MAX_BURST))
        for ident in found[-MAX_BURST:]:
            self._announce(ident)
        self._since = latest

    def _history(self):
        found, page, latest = {}, None, self._since
        for _ in range(MAX_PAGES):
            answer = self._client.call("GET", "/gmail/v1/users/me/history", {
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
            message = self._client.call("GET", "/gmail/v1/users/me/messages/" + ident, {
                "format": "metadata", "metadataHeaders": ["From", "Subject", "Date", "Message-ID"]})
        except GoogleError as e:
            if e.kind == "missing":
                return  # it was deleted meanwhile
            raise
        head = gmail_message.headers(message.get("payload") or {})
        self._server.notify("event/new_email", {
            "id": ident, "thread": message.get("threadId"),
            "message_id": email_message.header(head, "Message-ID", 400),
            "from": email_message.header(head, "From", 300),
            "subject": email_message.header(head, "Subject", 300) or "(no subject)",
            "date": email_message.header(head, "Date", 100)})
