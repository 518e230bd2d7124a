"""Events as the API has them, and as the tools take and give them.

A time with an offset stands for itself; one without is a time in a zone: the one that was
named, else the calendar's. A day alone makes a whole-day event, whose end is the day after
its last (https://developers.google.com/calendar/api/concepts/events-calendars).
"""

import re
from datetime import date, datetime, timedelta

from google_http import one_line
from mcp_stdio import ToolError

MAX_SHOWN = 100        # attendees of an event
MAX_DESCRIPTION = 8000  # characters; in lists MAX_GLIMPSE
MAX_GLIMPSE = 300


def whole_day(text):
    """Say whether a time is a day alone."""
    return len(text) == 10


def parse(name, text):
    """Return (date or datetime, offset text or "") of a time that fits the schema."""
    match = re.match(r"^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(:\d\d)?(?:\.\d+)?([Zz]|[+-]\d\d:\d\d)?)?$", text)
    try:
        if not match.group(2):
            return date(*map(int, match.group(1).split("-"))), ""
        return datetime.strptime(match.group(1) + match.group(2) + (match.group(3) or ":00"), "%Y-%m-%d%H:%M:%S"), match.group(4) or ""
    except (ValueError, AttributeError):
        raise ToolError("%s is not a time of the calendar" % name) from None


def instant(name, text, zone):
    """Return the RFC 3339 time with an offset that the API wants in queries. zone() gives
    the name of the time zone for a time without one."""
    moment, offset = parse(name, text)
    if not isinstance(moment, datetime):
        moment = datetime(moment.year, moment.month, moment.day)
    if not offset:
        place = zone()
        try:
            from zoneinfo import ZoneInfo
            offset = moment.replace(tzinfo=ZoneInfo(place)).strftime("%z")
        except (ImportError, KeyError, ValueError, OSError):
            raise ToolError("the time zone %s is not known here; give %s with an offset such as +01:00" % (place, name)) from None
        offset = offset[:3] + ":" + offset[3:5]
    return moment.strftime("%Y-%m-%dT%H:%M:%S") + offset.upper()


def times(start, end, zone):
    """Return {"start", "end"} of the API; end may be None. zone is a name, "" for whole days."""
    first, offset = parse("start", start)
    if whole_day(start):
        last = parse("end", end)[0] if end else first
        if end and not whole_day(end):
            raise ToolError("start is a whole day and end is not")
        if last < first:
            raise ToolError("the end is before the start")
        # null takes away what an event had before
        return {name: {"date": d.isoformat(), "dateTime": None, "timeZone": None}
                for name, d in (("start", first), ("end", last if last > first else first + timedelta(days=1)))}
    if end and whole_day(end):
        raise ToolError("end is a whole day and start is not")
    last, until = parse("end", end) if end else (first + timedelta(hours=1), offset)
    if offset == until and last < first:
        raise ToolError("the end is before the start")
    return {name: {"dateTime": moment.strftime("%Y-%m-%dT%H:%M:%S") + zoned.upper(), "timeZone": zone, "date": None}
            for name, moment, zoned in (("start", first, offset), ("end", last, until))}


def fields(args):
    """Return the part of an event resource that the arguments give, without times and attendees."""
    out = {k: args[k] for k in ("summary", "description", "location", "recurrence", "visibility") if k in args}
    if "busy" in args:
        out["transparency"] = "opaque" if args["busy"] else "transparent"
    if "reminders" in args:
        out["reminders"] = {"useDefault": False, "overrides": [{"method": "popup", "minutes": m} for m in args["reminders"]]}
    return out


def shown(event, long=True):
    """Return an event for the caller; long gives the whole description."""
    start, end = event.get("start") or {}, event.get("end") or {}
    out = {"id": event.get("id"), "summary": one_line(event.get("summary", "(no title)"), 300), "status": event.get("status"),
           "start": start.get("date") or start.get("dateTime"), "end": end.get("date") or end.get("dateTime"),
           "time_zone": start.get("timeZone"), "whole_day": True if "date" in start else None,
           "series": event.get("recurringEventId"), "recurrence": event.get("recurrence"),
           "location": one_line(event.get("location", ""), 500), "meet": event.get("hangoutLink"), "link": event.get("htmlLink"),
           "busy": False if event.get("transparency") == "transparent" else None,
           "visibility": event.get("visibility"), "kind": event.get("eventType") if event.get("eventType") != "default" else None}
    text = str(event.get("description") or "")
    most = MAX_DESCRIPTION if long else MAX_GLIMPSE
    out["description"] = text[:most] + ("\n[cut: %d characters in all]" % len(text) if len(text) > most else "")
    organizer = event.get("organizer") or {}
    if not organizer.get("self"):
        out["organizer"] = organizer.get("email")
    people = [p for p in event.get("attendees") or () if isinstance(p, dict)]
    mine = [p.get("responseStatus") for p in people if p.get("self")]
    out["my_response"] = mine[0] if mine else None
    if long:
        out["attendees"] = [_person(p) for p in people[:MAX_SHOWN]]
        if "overrides" in (event.get("reminders") or {}):
            out["reminders"] = [r.get("minutes") for r in event["reminders"]["overrides"]]
    if len(people) > (MAX_SHOWN if long else 0):
        out["attendees_in_all"] = len(people)
    return {k: v for k, v in out.items() if v not in (None, "", [])}


def _person(person):
    out = {"email": person.get("email"), "name": person.get("displayName"), "response": person.get("responseStatus")}
    out.update({k: True for k in ("organizer", "optional", "resource", "self") if person.get(k)})
    return {k: v for k, v in out.items() if v}
