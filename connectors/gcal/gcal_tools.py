"""The tools of the gcal connector as tools/list gives them: names, schemas, hints."""


def _object(required, **properties):
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def _string(description, **more):
    return dict({"type": "string", "description": description, "maxLength": 2000}, **more)


def _strings(description, most=200, pattern=None):
    item = {"type": "string", "minLength": 1, "maxLength": 500}
    return {"type": "array", "items": dict(item, pattern=pattern) if pattern else item, "maxItems": most, "description": description}


def _boolean(description, default=None):
    schema = {"type": "boolean", "description": description}
    return schema if default is None else dict(schema, default=default)


def _integer(description, low, high, default):
    return {"type": "integer", "description": description, "minimum": low, "maximum": high, "default": default}


CALENDAR = "^(primary|[^\\s/@]+@[^\\s/@]+)$"
MOMENT = "^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\\.[0-9]+)?)?([Zz]|[+-][0-9]{2}:[0-9]{2})?)?$"
_EMAIL = "^[^\\s@<>,;]+@[^\\s@<>,;]+$"
_RULE = "^(RRULE|EXRULE|RDATE|EXDATE)[:;][!-~]+$"
_CALENDAR = _string("Id of the calendar as list_calendars gives it.", pattern=CALENDAR, default="primary", maxLength=255)
_ID = _string("Id of the event. The id of a series means all its occurrences, that of an occurrence only this one.",
              pattern="^[A-Za-z0-9_][A-Za-z0-9_@.-]{0,1023}$")
_LIMIT = _integer("How many at most.", 1, 250, 50)
_PAGE = _string("next_page of the last answer, to go on where it ended.", pattern="^[!-~]{1,2000}$")
_ZONE = _string("Time zone such as Europe/Rome for times without an offset, and for the answer. Without it, that of the calendar.",
                pattern="^[A-Za-z0-9_+/-]{1,64}$")
_FROM = _string("Only what ends after this time: 2026-01-31, 2026-01-31T14:00 or 2026-01-31T14:00:00+01:00.", pattern=MOMENT)
_TO = _string("Only what starts before this time, written in the same ways.", pattern=MOMENT)
_NOTIFY = _string("Who gets an email from Google about it.", enum=["all", "externalOnly", "none"], default="all")
_EVENT = dict(
    summary=_string("Title."),
    start=_string("Start: 2026-01-31 for a whole day, 2026-01-31T14:00 or 2026-01-31T14:00:00+01:00.", pattern=MOMENT),
    end=_string("End, written like the start; for whole days the day after the last one. Without it an hour or a day later.",
                pattern=MOMENT),
    time_zone=_ZONE, description=_string("Description; Google shows simple HTML in it.", maxLength=8000),
    location=_string("Place."),
    recurrence=_strings("How it repeats, in lines of RFC 5545: RRULE:FREQ=WEEKLY;BYDAY=TU;COUNT=10, EXDATE;TZID=Europe/Rome:"
                        "20260203T140000. An empty list ends the repetition.", 20, _RULE),
    reminders={"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 40320}, "maxItems": 5,
               "description": "Minutes before the start at which to remind; an empty list means never. Without it, as the "
                              "calendar does."},
    visibility=_string("Who sees the details.", enum=["default", "public", "private"]),
    busy=_boolean("Whether it blocks the time."), notify=_NOTIFY)


def _tool(name, title, description, schema, read=False, destructive=False, idempotent=False):
    return {"name": name, "title": title, "description": description, "inputSchema": schema,
            "annotations": {"title": title, "readOnlyHint": read, "destructiveHint": destructive,
                            "idempotentHint": idempotent or read, "openWorldHint": True}}


TOOLS = [
    _tool("list_calendars", "List Calendars", "Lists the calendars with their time zones and what you may do in them.",
          _object((), limit=_LIMIT, page=_PAGE), read=True),
    _tool("list_events", "List Events", "Lists the events of a calendar by time, from now on unless told otherwise; repeated "
          "events are given by occurrence.",
          _object((), calendar=_CALENDAR, **{"from": _FROM}, to=_TO, query=_string("Words anywhere in the event."),
                  series=_boolean("Give repeated events once, with their rule, and in no order.", False), time_zone=_ZONE,
                  limit=_LIMIT, page=_PAGE), read=True),
    _tool("get_event", "Show Event", "Gives one event with its description, attendees and rule.",
          _object(("id",), calendar=_CALENDAR, id=_ID, time_zone=_ZONE), read=True),
    _tool("list_occurrences", "List Occurrences", "Lists the occurrences of a repeated event.",
          _object(("id",), calendar=_CALENDAR, id=_ID, **{"from": _FROM}, to=_TO, time_zone=_ZONE, limit=_LIMIT, page=_PAGE), read=True),
    _tool("create_event", "Create Event", "Puts an event into a calendar and invites its attendees.",
          _object(("summary", "start"), calendar=_CALENDAR, attendees=_strings("Email addresses of those who are invited.", 200, _EMAIL),
                  meet=_boolean("Add a Google Meet link.", False), **_EVENT)),
    _tool("update_event", "Change Event", "Changes what is given of an event and leaves the rest.",
          _object(("id",), calendar=_CALENDAR, id=_ID, add_attendees=_strings("Email addresses to invite as well.", 200, _EMAIL),
                  remove_attendees=_strings("Email addresses to take off the list.", 200, _EMAIL), **_EVENT), destructive=True, idempotent=True),
    _tool("delete_event", "Delete Event", "Deletes an event, or cancels one occurrence.",
          _object(("id",), calendar=_CALENDAR, id=_ID, notify=_NOTIFY), destructive=True, idempotent=True),
    _tool("respond_to_event", "Answer Invitation", "Accepts, declines or tentatively accepts an invitation.",
          _object(("id", "response"), calendar=_CALENDAR, id=_ID,
                  response=_string("The answer.", enum=["accepted", "declined", "tentative"]),
                  comment=_string("A note to the organizer."), notify=_NOTIFY), idempotent=True),
    _tool("free_busy", "Find Busy Times", "Tells when people or calendars are busy.",
          _object(("from", "to"), **{"from": _string("Start of the time in question.", pattern=MOMENT)},
                  to=_string("End of the time in question.", pattern=MOMENT), time_zone=_ZONE,
                  calendars=_strings("Ids of calendars or email addresses; without it your main calendar.", 50, CALENDAR)), read=True),
]
