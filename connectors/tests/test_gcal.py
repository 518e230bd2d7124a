"""The gcal connector against the double of the Calendar API."""

import time
import unittest

from google_double import CLOUD, EMAIL, outage
from google_double_gcal import HOLIDAYS, Calendar
from google_helpers import ErrorTests, GoogleTest, SignInTests, SingleFlightTests
from stdio_client import ProtocolTests


class CalendarTests(ProtocolTests, SignInTests, ErrorTests, SingleFlightTests, GoogleTest):
    connector, script, variable, service = "gcal", "gcal_mcp_server.py", "GCAL", Calendar
    probe, pattern, path = "list_calendars", "GET /calendar/v3/(users/me/calendarList|calendars/primary)$", "/calendar/v3/calendars/primary"
    narrow = [CLOUD + "calendar.readonly"]

    def kept(self, ident, calendar=EMAIL):
        return self.api.events[calendar][ident]

    def put(self, **event):
        return self.api.insert("primary", {}, event)["id"]

    # -- reading

    def test_calendars(self):
        calendars = self.ok(self.start(), "list_calendars")["calendars"]
        self.assertEqual([(c["id"], c["access"], c.get("primary")) for c in calendars], [(EMAIL, "owner", True), (HOLIDAYS, "reader", None)])
        first = self.ok(self.start(), "list_calendars", limit=1)
        self.assertEqual(self.ok(self.start(), "list_calendars", page=first["next_page"])["calendars"][0]["id"], HOLIDAYS)

    def test_list_events(self):
        client = self.start()
        self.ok(client, "create_event", summary="Past", start="2020-01-01")
        weekly = self.ok(client, "create_event", summary="Weekly", start="2030-03-25T09:00", recurrence=["RRULE:FREQ=WEEKLY;COUNT=3"])["id"]
        self.ok(client, "create_event", summary="Day", start="2030-04-01")
        found = self.ok(client, "list_events")
        self.assertEqual([(e["summary"], e["start"]) for e in found["events"]], [  # the clock changes on 2030-03-31
            ("Weekly", "2030-03-25T09:00:00+01:00"), ("Day", "2030-04-01"), ("Weekly", "2030-04-01T09:00:00+02:00"),
            ("Weekly", "2030-04-08T09:00:00+02:00")])
        self.assertEqual((found["time_zone"], found["events"][0]["series"]), ("Europe/Rome", weekly))
        self.assertEqual([e["summary"] for e in self.ok(client, "list_events", **{"from": "2020-01-01", "to": "2020-01-02"})["events"]], ["Past"])
        self.assertEqual(len(self.ok(client, "list_events", query="week", to="2030-04-02T00:00:00Z")["events"]), 2)
        series = self.ok(client, "list_events", series=True)["events"]
        self.assertEqual([e["recurrence"] for e in series if "recurrence" in e], [["RRULE:FREQ=WEEKLY;COUNT=3"]])
        first = self.ok(client, "list_events", limit=3)
        rest = self.ok(client, "list_events", limit=3, page=first["next_page"], **{"from": first["from"]})
        self.assertEqual(len(rest["events"]), 1)
        self.fails(client, "list_events", "give from again", page="p3")
        occurrences = self.ok(client, "list_occurrences", id=weekly, **{"from": "2030-04-01"})["events"]
        self.assertEqual([e["start"][:10] for e in occurrences], ["2030-04-01", "2030-04-08"])
        self.assertEqual(self.ok(client, "list_events", calendar=HOLIDAYS)["events"], [])
        asked = self.double.asked("GET .*/events$")[1]
        self.assertEqual(asked[1]["timeMin"], ["2020-01-01T00:00:00+01:00"])
        for hostile in ("../x", "a/b@c", "a", "primary\n", ".."):
            self.fails(client, "list_events", "calendar must match", calendar=hostile)
        self.fails(client, "list_events", "404: Not Found", calendar="nobody@example.test")

    def test_times(self):
        client = self.start()
        for text, words in (("2026-02-30", "start is not a time"), ("2026-01-01T25:00", "start is not a time"), ("soon", "start must match"),
                            ("2026-01-01T10:00+0100", "start must match")):
            self.fails(client, "create_event", words, summary="x", start=text)
        for start, end, words in (("2026-01-02", "2026-01-01", "end is before the start"), ("2026-01-02", "2026-01-02T10:00", "end is not"),
                                  ("2026-01-02T10:00", "2026-01-03", "start is not"), ("2026-01-02T10:00", "2026-01-02T09:00", "before the start"),
                                  ("2026-01-02T10:00:00+01:00", "2026-01-02T09:30:00+02:00", "time range is empty")):
            self.fails(client, "create_event", words, summary="x", start=start, end=end)
        self.fails(client, "create_event", "Invalid time zone definition", summary="x", start="2026-01-01T10:00", time_zone="Mars/Base")
        self.fails(client, "list_events", "time zone Mars/Base is not known here", time_zone="Mars/Base", **{"from": "2026-01-01"})
        for start, end, want in (("2026-01-01", None, ("2026-01-01", "2026-01-02")), ("2026-01-01", "2026-01-01", ("2026-01-01", "2026-01-02")),
                                 ("2026-01-01", "2026-01-04", ("2026-01-01", "2026-01-04")),
                                 ("2026-01-01T10:00", None, ("2026-01-01T10:00:00", "2026-01-01T11:00:00")),
                                 ("2026-01-01 10:00:30z", None, ("2026-01-01T10:00:30Z", "2026-01-01T11:00:30Z"))):
            made = self.ok(client, "create_event", summary="x", start=start, **({"end": end} if end else {}))
            self.assertEqual((made["start"], made["end"]), want)
            self.assertEqual(made.get("time_zone"), None if len(start) == 10 else "Europe/Rome")

    # -- writing

    def test_create_and_get(self):
        client = self.start()
        made = self.ok(client, "create_event", summary="Caff\u00e8 \u2603", start="2030-01-01T10:00", end="2030-01-01T10:30",
                       time_zone="America/New_York", description="d" * 7999, location="Bar", attendees=["bob@example.test"], reminders=[5, 60],
                       visibility="private", busy=False, meet=True, notify="none")
        kept = self.kept(made["id"])
        self.assertEqual(kept["start"], {"dateTime": "2030-01-01T10:00:00", "timeZone": "America/New_York"})
        self.assertEqual((kept["transparency"], kept["visibility"], kept["attendees"]),
                         ("transparent", "private", [{"email": "bob@example.test", "responseStatus": "needsAction"}]))
        self.assertEqual(kept["reminders"]["overrides"], [{"method": "popup", "minutes": 5}, {"method": "popup", "minutes": 60}])
        self.assertEqual(self.api.sent[-1][1], "none")
        got = self.ok(client, "get_event", id=made["id"])
        self.assertEqual((got["meet"], got["busy"], got["reminders"]), ("https://meet.google.com/abc-defg-hij", False, [5, 60]))
        self.assertEqual(got["attendees"], [{"email": "bob@example.test", "response": "needsAction"}])
        self.assertEqual(len(self.ok(client, "list_events")["events"][0]["description"].split("\n")[0]), 300)
        self.fails(client, "create_event", "403: You need to have writer access", calendar=HOLIDAYS, summary="x", start="2026-01-01")
        for field in ({"attendees": ["a@b\r\nX: y"]}, {"attendees": ["nobody"]}, {"recurrence": ["RRULE:FREQ=DAILY\nX:1"]}, {"recurrence": ["x"]}):
            self.assertIn("must match", client.call("create_event", summary="x", start="2026-01-01", **field)[0])

    def test_creating_twice_makes_one_event(self):
        client = self.start()
        self.double.fail("POST .*/events$", "late", outage())
        self.ok(client, "create_event", summary="once", start="2030-01-01")
        self.assertEqual(len(self.api.events[EMAIL]), 1)

    def test_update(self):
        client = self.start()
        ident = self.ok(client, "create_event", summary="a", start="2030-01-01T10:00", end="2030-01-01T12:30", attendees=["b@example.test"])["id"]
        out = self.ok(client, "update_event", id=ident, summary="b", start="2030-01-02T09:00")
        self.assertEqual((out["summary"], out["start"], out["end"]), ("b", "2030-01-02T09:00:00", "2030-01-02T11:30:00"))
        out = self.ok(client, "update_event", id=ident, end="2030-01-02T10:00")
        self.assertEqual((out["start"], out["end"]), ("2030-01-02T09:00:00", "2030-01-02T10:00:00"))
        out = self.ok(client, "update_event", id=ident, start="2030-02-01", end="2030-02-03")
        self.assertEqual((out["start"], out["end"], out["whole_day"]), ("2030-02-01", "2030-02-03", True))
        out = self.ok(client, "update_event", id=ident, start="2030-02-05")
        self.assertEqual((out["start"], out["end"]), ("2030-02-05", "2030-02-07"))
        out = self.ok(client, "update_event", id=ident, start="2030-02-05T08:00", time_zone="Asia/Tokyo")
        self.assertEqual(self.kept(ident)["start"], {"dateTime": "2030-02-05T08:00:00", "timeZone": "Asia/Tokyo"})
        out = self.ok(client, "update_event", id=ident, add_attendees=["c@example.test", "B@example.test"])
        self.assertEqual([a["email"] for a in out["attendees"]], ["b@example.test", "c@example.test"])
        out = self.ok(client, "update_event", id=ident, remove_attendees=["B@EXAMPLE.test"], description="new")
        self.assertEqual(([a["email"] for a in out["attendees"]], out["description"]), (["c@example.test"], "new"))
        self.fails(client, "update_event", "nothing was given", id=ident)
        self.fails(client, "update_event", "404", id="nope", summary="x")
        for hostile in ("../x", "a/b", "..", "a?b"):
            self.fails(client, "update_event", "id must match", id=hostile, summary="x")

    def test_one_occurrence_of_a_series(self):
        client = self.start()
        ident = self.ok(client, "create_event", summary="s", start="2030-01-01T10:00", recurrence=["RRULE:FREQ=DAILY;COUNT=3"])["id"]
        second, third = [e["id"] for e in self.ok(client, "list_occurrences", id=ident)["events"]][1:]
        self.ok(client, "update_event", id=second, summary="moved")
        self.ok(client, "delete_event", id=third)
        self.assertEqual([e["summary"] for e in self.ok(client, "list_events")["events"]], ["s", "moved"])
        self.ok(client, "update_event", id=ident, recurrence=[])
        self.assertEqual(self.kept(ident)["recurrence"], [])

    def test_delete(self):
        client = self.start()
        ident = self.put(start={"date": "2030-01-01"}, end={"date": "2030-01-02"}, id="abcde")
        self.assertEqual(self.ok(client, "delete_event", id=ident, notify="externalOnly"), {"deleted": ident})
        self.assertEqual(self.api.sent[-1], (ident, "externalOnly"))
        self.assertEqual(self.ok(client, "delete_event", id=ident)["note"], "it was deleted already")

    def test_respond(self):
        client = self.start()
        ident = self.put(summary="party", start={"date": "2030-01-01"}, end={"date": "2030-01-02"}, id="abcde",
                         attendees=[{"email": "bob@example.test", "responseStatus": "accepted"}, {"email": EMAIL, "self": True}])
        out = self.ok(client, "respond_to_event", id=ident, response="tentative", comment="maybe")
        self.assertEqual(out["my_response"], "tentative")
        self.assertEqual([(a["email"], a["responseStatus"]) for a in self.kept(ident)["attendees"]],
                         [("bob@example.test", "accepted"), (EMAIL, "tentative")])
        other = self.put(start={"date": "2030-01-01"}, end={"date": "2030-01-02"}, id="abcdf")
        self.fails(client, "respond_to_event", "not among the attendees", id=other, response="accepted")

    def test_free_busy(self):
        client = self.start()
        self.ok(client, "create_event", summary="a", start="2030-01-01T10:00:00+01:00")
        self.ok(client, "create_event", summary="free", start="2030-01-01T12:00:00+01:00", busy=False)
        out = self.ok(client, "free_busy", **{"from": "2030-01-01", "to": "2030-01-02"}, calendars=["primary", "bob@example.test"])
        self.assertEqual(out["calendars"], {
            "primary": {"busy": [{"start": "2030-01-01T10:00:00+01:00", "end": "2030-01-01T11:00:00+01:00"}]},
            "bob@example.test": {"error": "not found or not shared with you"}})
        self.assertEqual(out["time_zone"], "Europe/Rome")

    # -- push

    def looks(self, count):
        until = time.monotonic() + 30
        while len(self.double.asked("GET .*/events$")) < count and time.monotonic() < until:
            time.sleep(0.02)
        self.assertGreaterEqual(len(self.double.asked("GET .*/events$")), count)

    def test_changes_are_announced(self):
        self.put(summary="old", start={"date": "2030-01-01"}, end={"date": "2030-01-02"}, id="abcde")
        client = self.start(self.environment(PUSH="true", POLL_SECONDS="1"))
        self.looks(1)
        ident = self.put(summary="new", start={"date": "2030-01-01"}, end={"date": "2030-01-02"}, id="neuid")
        self.assertEqual(self.notification(client), ("event/calendar_event", {
            "calendar": "primary", "change": "created", "id": ident, "summary": "new", "start": "2030-01-01", "end": "2030-01-02"}))
        self.api.patch("primary", "abcde", {}, {"summary": "newer"})
        self.assertEqual(self.notification(client)[1]["change"], "updated")
        self.api.delete("primary", ident, {}, {})
        self.assertEqual(self.notification(client)[1], {"calendar": "primary", "change": "cancelled", "id": ident})
        self.silent(client)
        self.api.oldest = 10 ** 6  # the token is forgotten
        before = len([r for r in self.double.asked("GET .*/events$") if "syncToken" not in r[1]])
        until = time.monotonic() + 30
        while "the watch starts anew" not in client.log() and time.monotonic() < until:
            time.sleep(0.02)
        self.assertIn("the watch starts anew", client.log())
        self.looks(before + 1)
        self.silent(client)

    def test_the_watch_ends_when_the_sign_in_does(self):
        self.double.scopes = ["openid"]
        client = self.start(self.environment(PUSH="true"))
        self.fails(client, "list_calendars", "permission (scope) is missing")
        until = time.monotonic() + 30
        while "nothing is announced until" not in client.log() and time.monotonic() < until:
            time.sleep(0.02)
        self.assertIn("nothing is announced until the connector is started again", client.log())


if __name__ == "__main__":
    unittest.main()
