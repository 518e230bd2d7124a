"""The Calendar part of the double: a few calendars in memory, with simple repetition.

https://developers.google.com/calendar/api/v3/reference
"""

import re
from datetime import date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

from google_double import CLOUD, EMAIL, Refusal, page

HOLIDAYS = "en.italian#holiday@group.v.calendar.google.com"
CREATED = "2026-01-01T00:00:00.000Z"


def refuse(code, message, reason):
    return Refusal(code, message, reason)


def moment(text, zone="UTC"):
    """Return the aware datetime of an RFC 3339 time or a date."""
    if len(text) == 10:
        return datetime.combine(date.fromisoformat(text), datetime.min.time(), ZoneInfo(zone))
    at = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return at if at.tzinfo else at.replace(tzinfo=ZoneInfo(zone))


class Calendar:
    prefix, service, title = "/calendar/v3/", "calendar-json.googleapis.com", "Google Calendar API"

    def __init__(self):
        self.calendars = {EMAIL: {"id": EMAIL, "summary": EMAIL, "timeZone": "Europe/Rome", "accessRole": "owner", "primary": True},
                          HOLIDAYS: {"id": HOLIDAYS, "summary": "Holidays", "timeZone": "Europe/Rome", "accessRole": "reader"}}
        self.events = {ident: {} for ident in self.calendars}
        self.version, self.oldest, self.sent = 0, 0, []
        calendar, event = "/calendar/v3/calendars/([^/]+)", "/events/([^/]+)"
        self.routes = [
            ("GET", "/calendar/v3/users/me/calendarList", self.calendar_list), ("GET", calendar, lambda c, q, b: self.calendar(c)),
            ("GET", calendar + "/events", self.list), ("POST", calendar + "/events", self.insert),
            ("GET", calendar + event, self.get), ("PATCH", calendar + event, self.patch), ("DELETE", calendar + event, self.delete),
            ("GET", calendar + event + "/instances", self.instances), ("POST", "/calendar/v3/freeBusy", self.free_busy)]

    @staticmethod
    def accepts(method, path, granted):
        read = method == "GET" or path.endswith("/freeBusy")
        names = ["calendar"] + (["calendar.readonly"] if read else []) + (["calendar.events"] if "/events" in path else [])
        return any(CLOUD + n in granted for n in names)

    def calendar(self, ident):
        ident = EMAIL if ident == "primary" else ident
        if ident not in self.calendars:
            raise refuse(404, "Not Found", "notFound")
        return self.calendars[ident]

    def calendar_list(self, query, _body):
        items, more = page(list(self.calendars.values()), query, 100, 250)
        return dict({"kind": "calendar#calendarList", "items": items}, **more)

    # -- events

    def find(self, calendar, ident):
        inside = self.events[self.calendar(calendar)["id"]]
        base = re.sub(r"_\d{8}(T\d{6}Z)?$", "", ident)
        if ident in inside:
            if inside[ident]["status"] == "cancelled":
                raise refuse(410, "Resource has been deleted", "deleted")
            return inside[ident]
        for one in self.expand(calendar, inside.get(base)) if base in inside else ():
            if one["id"] == ident:
                return one
        raise refuse(404, "Not Found", "notFound")

    def check(self, event, writable):
        if writable["accessRole"] == "reader":
            raise refuse(403, "You need to have writer access to this calendar.", "requiredAccessLevel")
        start, end = event.get("start") or {}, event.get("end") or {}
        for side, name in ((start, "start"), (end, "end")):
            if ("date" in side) == ("dateTime" in side):
                raise refuse(400, "Invalid %s time." % name, "invalid")
            if "dateTime" in side and not re.search(r"(Z|[+-]\d\d:\d\d)$", side["dateTime"]) and not side.get("timeZone"):
                raise refuse(400, "Missing time zone definition for %s time." % name, "required")
            if side.get("timeZone"):
                try:
                    ZoneInfo(side["timeZone"])
                except (KeyError, ValueError):
                    raise refuse(400, "Invalid time zone definition for %s time." % name, "invalid") from None
        if event.get("recurrence") and "dateTime" in start and not start.get("timeZone"):
            raise refuse(400, "Missing time zone definition for start time.", "required")
        if self.at(start) > self.at(end) or "date" in start and start["date"] >= end["date"]:
            raise refuse(400, "The specified time range is empty.", "timeRangeEmpty")

    @staticmethod
    def at(side):
        return moment(side.get("date") or side["dateTime"], side.get("timeZone") or "UTC")

    def put(self, calendar, event, params):
        self.version += 1
        event["_version"], event["etag"] = self.version, '"%d"' % self.version
        event["updated"] = "2026-01-01T00:%02d:00.500Z" % min(59, self.version) if "created" in event else CREATED
        event.setdefault("created", event["updated"])
        self.sent.append((event["id"], params.get("sendUpdates", ["none"])[0]))
        self.events[self.calendar(calendar)["id"]][event["id"]] = event
        return self.public(event)

    @staticmethod
    def public(event):
        return {k: v for k, v in event.items() if not k.startswith("_")}

    def insert(self, calendar, query, body):
        event = dict(body, kind="calendar#event", status="confirmed", eventType="default")
        event.setdefault("id", "auto%d" % self.version)
        event["organizer"] = {"email": EMAIL, "self": True}
        event["htmlLink"] = "https://www.google.com/calendar/event?eid=" + event["id"]
        if not re.match(r"^[a-v0-9]{5,1024}$", event["id"]):
            raise refuse(400, "Invalid resource id value.", "invalid")
        self.check(event, self.calendar(calendar))
        if event["id"] in self.events[self.calendar(calendar)["id"]]:
            raise refuse(409, "The requested identifier already exists.", "duplicate")
        if event.pop("conferenceData", None) and query.get("conferenceDataVersion") == ["1"]:
            event["hangoutLink"] = "https://meet.google.com/abc-defg-hij"
        for person in event.get("attendees", ()):
            person.setdefault("responseStatus", "needsAction")
        return self.put(calendar, event, query)

    def patch(self, calendar, ident, query, body):
        event = dict(self.find(calendar, ident))
        for key, value in body.items():
            if isinstance(value, dict):
                value = {k: v for k, v in dict(event.get(key, {}), **value).items() if v is not None}
            event[key] = value
        self.check(event, self.calendar(calendar))
        for person in event.get("attendees", ()):
            person.setdefault("responseStatus", "needsAction")
        return self.put(calendar, event, query)

    def delete(self, calendar, ident, query, _body):
        self.put(calendar, dict(self.find(calendar, ident), status="cancelled"), query)

    def get(self, calendar, ident, _query, _body):
        return self.public(self.find(calendar, ident))

    def expand(self, calendar, event):
        """Return the occurrences of an event; RRULE with FREQ DAILY or WEEKLY and COUNT."""
        rule = next((r for r in event.get("recurrence") or () if r.startswith("RRULE:")), None)
        if rule is None:
            return [event]
        rule = dict(p.split("=") for p in rule[6:].split(";"))
        out, inside = [], self.events[self.calendar(calendar)["id"]]
        for n in range(int(rule.get("COUNT", 10))):
            shift = timedelta(days=n * {"DAILY": 1, "WEEKLY": 7}[rule["FREQ"]])
            one = {k: v for k, v in event.items() if k != "recurrence"}
            zone = ZoneInfo(event["start"].get("timeZone") or "UTC")
            for name in ("start", "end"):
                if "date" in event[name]:
                    one[name] = {"date": (date.fromisoformat(event[name]["date"]) + shift).isoformat()}
                else:
                    local = self.at(event[name]).astimezone(zone).replace(tzinfo=None) + shift
                    one[name] = {"dateTime": local.replace(tzinfo=zone).isoformat(), "timeZone": event["start"]["timeZone"]}
            start = self.at(one["start"]).astimezone(timezone.utc)
            one["id"] = event["id"] + start.strftime("_%Y%m%d" + ("" if "date" in one["start"] else "T%H%M%SZ"))
            one["recurringEventId"] = event["id"]
            if inside.get(one["id"], one)["status"] != "cancelled":
                out.append(inside.get(one["id"], one))
        return out

    def list(self, calendar, query, _body):
        inside, zone = self.events[self.calendar(calendar)["id"]], self.calendar(calendar)["timeZone"]
        single = query.get("singleEvents") == ["true"]
        if "syncToken" in query:
            if set(query) & {"timeMin", "timeMax", "q", "orderBy", "updatedMin"}:
                raise refuse(400, "Sync token cannot be used with other parameters.", "cannotUseTokenAndParameters")
            since = int(query["syncToken"][0][1:])
            if since < self.oldest:
                raise refuse(410, "Sync token is no longer valid, a full sync is required.", "fullSyncRequired")
            found = sorted((e for e in inside.values() if e["_version"] > since), key=lambda e: e["_version"])
        else:
            found = [e for e in inside.values() if e["status"] != "cancelled"]
            if single:
                found = [one for e in found if "recurringEventId" not in e for one in self.expand(calendar, e)]
            found = self._within(found, query, zone)
        if query.get("orderBy") == ["startTime"]:
            if not single:
                raise refuse(400, "The requested ordering is not available for the particular query.", "invalid")
            found.sort(key=lambda e: self.at(e["start"]))
        items, more = page(found, query, 250, 2500)
        items = [self.public(e) if e["status"] != "cancelled" else {k: e[k] for k in ("id", "status", "kind", "etag")} for e in items]
        fields = query.get("fields", ["items"])[0]
        out = {"kind": "calendar#events", "timeZone": query.get("timeZone", [zone])[0], "items": items}
        out.update(more or {"nextSyncToken": "v%d" % self.version})
        return out if "items" in fields else {k: v for k, v in out.items() if k in fields}

    def _within(self, found, query, _zone):
        for name in ("timeMin", "timeMax"):
            if name in query and not re.search(r"(Z|[+-]\d\d:\d\d)$", query[name][0]):
                raise refuse(400, "Bad Request", "badRequest")
        if "timeMin" in query:
            found = [e for e in found if self.at(e["end"]) > moment(query["timeMin"][0])]
        if "timeMax" in query:
            found = [e for e in found if self.at(e["start"]) < moment(query["timeMax"][0])]
        if "q" in query:
            found = [e for e in found if query["q"][0].lower() in (e.get("summary", "") + e.get("description", "")).lower()]
        return found

    def instances(self, calendar, ident, query, _body):
        items, more = page(self._within(self.expand(calendar, self.find(calendar, ident)), query, ""), query, 250, 2500)
        return dict({"kind": "calendar#events", "timeZone": "Europe/Rome", "items": [self.public(e) for e in items]}, **more)

    def free_busy(self, _query, body):
        out = {}
        for item in body["items"]:
            ident = EMAIL if item["id"] == "primary" else item["id"]
            if ident not in self.calendars:
                out[item["id"]] = {"errors": [{"domain": "global", "reason": "notFound"}], "busy": []}
                continue
            found = [one for e in self.events[ident].values() if e["status"] != "cancelled" and e.get("transparency") != "transparent"
                     for one in self.expand(ident, e)]
            found = self._within(found, {"timeMin": [body["timeMin"]], "timeMax": [body["timeMax"]]}, "")
            out[item["id"]] = {"busy": [{"start": self.at(e["start"]).isoformat(), "end": self.at(e["end"]).isoformat()} for e in found]}
        return {"kind": "calendar#freeBusy", "timeMin": body["timeMin"], "timeMax": body["timeMax"], "calendars": out}
