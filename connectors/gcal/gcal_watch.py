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
import google_watch
from google_http import GoogleError
from mcp_stdio import ToolError

MAX_PAGES = 200  # of 2500 events, for one look
PATH = "/calendar/v3/calendars/primary/events"


class Watcher(google_watch.Watcher):
    """Announces changes in the main calendar."""

    watched = "the calendar"
    _token = None

    def look(self):
        """Announce what changed since the last look; the first one only remembers where it is."""
        first = self._token is None
        try:
            found, token = self._changes()
        except GoogleError as e:
            if e.kind != "gone" or first:
                raise
            self.server.log("Google has forgotten the state of the last look; the watch starts anew")
            self._token = None
            return self.look()
        for event in self.burst(found):
            self._announce(event)
        self._token = token

    def _changes(self):
        found, page = [], None
        fields = "nextPageToken,nextSyncToken" + ("" if self._token is None else ",items")
        for _ in range(MAX_PAGES):
            answer = self.client.call("GET", PATH, {"maxResults": 2500, "syncToken": self._token, "pageToken": page, "fields": fields})
            found = (found + [e for e in answer.get("items") or () if isinstance(e, dict)])[-google_watch.MAX_BURST - 1:] if self._token else []
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
        self.server.notify("event/calendar_event", out)


def _second(text):
    try:
        return calendar.timegm(time.strptime(str(text)[:19], "%Y-%m-%dT%H:%M:%S"))
    except ValueError:
        return 0
