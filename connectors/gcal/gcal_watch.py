"""The watcher: tells the client of changes in the main calendar while the connector runs.

Every 60 seconds (GCAL_POLL_SECONDS) it asks events.list with a sync token what changed
since the last look (https://developers.google.com/calendar/api/guides/sync). For each
changed event the client gets

    {"jsonrpc": "2.0", "method": "event/calendar_event", "params":
        {"calendar", "change": "created" | "updated" | "cancelled", "id", "summary", "start", "end", "organizer"}}

Events that were there at the start are not announced. Changes made through this connector
are announced like those of others. When Google has forgotten the token (410) the watch
starts anew.
"""

import calendar
import time

import gcal_event
from google_http import GoogleError
from mcp_stdio import ToolError

MAX_BURST = 20    # events announced one by one; the rest of a burst is counted
MAX_PAGES = 200   # of 2500 events, for one look
RETRY_SECONDS = (5, 15, 60, 300)  # after a failure; the last one is repeated
FINAL = ("signin", "client", "scope", "disabled", "setting", "denied")  # what another try does not mend
PATH = "/calendar/v3/calendars/primary/events"


class Watcher:
    """Run watch() in a thread. client is the google_api.Client, server the mcp_stdio.Server to notify."""

    def __init__(self, client, server, seconds):
        self._client, self._server, self._seconds = client, server, seconds
        self._token = None

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
                    self._server.log("watching the calendar: %s; changes are not announced until the connector is "
                                     "started again" % e)
                    return
                pause = max(self._seconds if kind == "busy" else 0, RETRY_SECONDS[min(failures, len(RETRY_SECONDS) - 1)])
                failures += 1
                self._server.log("watching the calendar: %s; next try in %d s" % (str(e) or type(e).__name__, pause))
            self._server.stopping.wait(pause)

    def look(self):
        """Announce what changed since the last look; the first one only remembers where it is."""
        first = self._token is None
        try:
            found, token = self._changes()
        except GoogleError as e:
            if e.kind != "gone" or first:
                raise
            self._server.log("Google has forgotten the state of the last look; the watch starts anew")
            self._token = None
            return self.look()
        if first:
            self._server.log("watching the calendar (every %d s)" % self._seconds)
        elif len(found) > MAX_BURST:
            self._server.log("%d changes at once; the last %d are announced" % (len(found), MAX_BURST))
        for event in found[-MAX_BURST:]:
            self._announce(event)
        self._token = token

    def _changes(self):
        found, page = [], None
        fields = "nextPageToken,nextSyncToken" + ("" if self._token is None else ",items")
        for _ in range(MAX_PAGES):
            answer = self._client.call("GET", PATH, {"maxResults": 2500, "syncToken": self._token, "pageToken": page, "fields": fields})
            found = (found + [e for e in answer.get("items") or () if isinstance(e, dict)])[-MAX_BURST - 1:] if self._token else []
            page = answer.get("nextPageToken")
            if not page:
                return found, answer.get("nextSyncToken")
        raise ToolError("the calendar is too large to be watched")

    def _announce(self, event):
        change = "cancelled" if event.get("status") == "cancelled" else \
            "created" if _second(event.get("updated")) - _second(event.get("created")) <= 2 else "updated"
        shown = gcal_event.shown(event, False)
        out = {"calendar": "primary", "change": change}
        out.update({k: shown[k] for k in ("id", "summary", "start", "end", "organizer") if k in shown})
        if change == "cancelled" and "summary" not in event:
            out.pop("summary", None)  # of a cancelled event little more than the id is told
        self._server.notify("event/calendar_event", out)


def _second(text):
    try:
        return calendar.timegm(time.strptime(str(text)[:19], "%Y-%m-%dT%H:%M:%S"))
    except ValueError:
        return 0
