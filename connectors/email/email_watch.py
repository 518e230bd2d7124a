"""The watcher: tells the client of new mail while the connector runs.

It has an IMAP connection of its own, since the other one belongs to the thread that
serves the tools. Where the server offers IDLE it waits for the server's word, else it
looks every 60 seconds (Settings.poll_seconds). For each new message in the inbox the client gets

    {"jsonrpc": "2.0", "method": "event/new_email", "params":
        {"folder", "uid", "message_id", "from", "subject", "date"}}

Messages that were there at the start are not announced; those that came while the
connection was down are, once, when it is back.
"""

import imaplib
import socket
import time

import email_message
from email_config import ConfigError, ConnectError, open_imap
from email_imap import fetch_items, search_uids
from mcp_stdio import ToolError

IDLE_SECONDS = 9 * 60        # IDLE is renewed; servers and routers drop silent connections after 10 to 29 minutes
RETRY_SECONDS = (1, 5, 15, 60, 300)  # after a failure; the last one is repeated
MAX_BURST = 20               # messages announced one by one; the rest of a burst is counted
FOLDER = "INBOX"


class Watcher:
    """Run watch() in a thread. server is the mcp_stdio.Server to notify."""

    def __init__(self, settings, server):
        self._settings = settings
        self._server = server
        self._validity = None
        self._next = None  # the lowest UID that was not yet announced

    def watch(self):
        """Watch until the server stops; never raises."""
        failures = 0
        self._server.initialized.wait()
        while not self._server.stopping.is_set():
            started = time.monotonic()
            try:
                self._session()
            except (ConnectError, ConfigError, ToolError, imaplib.IMAP4.error, OSError, ValueError) as e:
                if time.monotonic() - started > 120:
                    failures = 0
                pause = RETRY_SECONDS[min(failures, len(RETRY_SECONDS) - 1)]
                failures += 1
                self._server.log("watching for new mail: %s; next try in %d s" % (str(e) or type(e).__name__, pause))
                if isinstance(e, ConnectError) and e.kind == "password":
                    self._server.log("new mail is not announced until the connector is started again")
                    return  # trying again with a refused password locks accounts
                self._server.stopping.wait(pause)

    def _session(self):
        conn = open_imap(self._settings)
        try:
            self._start(conn)
            idle = "IDLE" in conn.capabilities
            self._server.log("watching for new mail (%s)" % ("IDLE" if idle else "every %d s" % self._settings.poll_seconds))
            while not self._server.stopping.is_set():
                conn.untagged_responses.pop("EXISTS", None)
                self._announce(conn)
                if conn.untagged_responses.get("EXISTS"):
                    continue  # more came while we looked; IDLE would not tell of it again
                if idle:
                    self._idle(conn)
                else:
                    self._server.stopping.wait(self._settings.poll_seconds)
                    conn.noop()
        finally:
            conn.shutdown()

    def _start(self, conn):
        """Select the inbox and find out from which UID on messages are new."""
        status, _ = conn.select(FOLDER, readonly=True)
        if status != "OK":
            raise ToolError("the inbox cannot be opened")
        validity = conn.response("UIDVALIDITY")[1][-1]
        if self._next is None or validity != self._validity:
            following = conn.response("UIDNEXT")[1][-1]
            if following:
                self._next = int(following)
            else:
                uids = search_uids(conn, ["ALL"])
                self._next = uids[-1] + 1 if uids else 1
            self._validity = validity

    def _announce(self, conn):
        uids = [u for u in search_uids(conn, ["UID", "%d:*" % self._next]) if u >= self._next]
        if not uids:
            return
        shown = uids[-MAX_BURST:]
        if len(uids) > len(shown):
            self._server.log("%d new messages at once; the last %d are announced" % (len(uids), len(shown)))
        status, data = conn.uid("FETCH", ",".join(map(str, shown)),
                                "(UID BODY.PEEK[HEADER.FIELDS (FROM SUBJECT DATE MESSAGE-ID)])")
        items = fetch_items(data) if status == "OK" else {}
        for uid in shown:
            head = email_message.read(items.get(uid, {}).get("BODY") or b"")
            self._server.notify("event/new_email", {
                "folder": FOLDER, "uid": uid,
                "message_id": email_message.header(head, "Message-ID", 400),
                "from": email_message.header(head, "From", 300),
                "subject": email_message.header(head, "Subject", 300) or "(no subject)",
                "date": email_message.header(head, "Date", 100)})
        self._next = uids[-1] + 1

    def _idle(self, conn):
        """Wait in IDLE until the server says that a message came, or it is time to renew."""
        conn.send(b"IDLE1 IDLE\r\n")
        line = conn.readline()
        while not line.startswith(b"+"):
            if line.startswith(b"IDLE1 "):
                raise ToolError("the server refused IDLE")
            line = conn.readline()
        until = time.monotonic() + IDLE_SECONDS
        try:
            while not self._server.stopping.is_set():
                left = until - time.monotonic()
                if left <= 0:
                    break
                conn.wait(min(left, 30))
                try:
                    line = conn.readline()
                except socket.timeout:
                    continue
                if line.startswith(b"* BYE"):
                    raise conn.abort("the server closed the connection")
                if b"EXISTS" in line.upper() or b"RECENT" in line.upper():
                    break
        finally:
            conn.wait(25)
        conn.send(b"DONE\r\n")
        while not conn.readline().startswith(b"IDLE1 "):
            pass
