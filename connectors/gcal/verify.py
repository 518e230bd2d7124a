"""Proves the sign-in of the gcal connector: asks the API for the main calendar, changes nothing.

Prints one JSON line {"ok", "message", "details"} and exits with 0 when Google Calendar
answered. The message tells a missing or revoked sign-in from a missing permission, an API
that is not enabled, and a network that does not work.
"""

import json
import os
import sys

from gcal_config import Settings
from google_http import GoogleError

SCOPES = ("https://www.googleapis.com/auth/calendar.events", "https://www.googleapis.com/auth/calendar.readonly")


def run():
    """Return the result object."""
    try:
        settings = Settings(os.environ)
        calendar = settings.client().call("GET", "/calendar/v3/calendars/primary")
        # Reading works with narrower permissions; what Google says it granted tells of the others.
        settings.credential.require(*SCOPES)
    except GoogleError as e:
        return {"ok": False, "message": str(e), "details": {"kind": e.kind}}
    return {"ok": True, "message": "signed in as %s" % calendar.get("id"), "details": {"time_zone": calendar.get("timeZone")}}


def main():
    result = run()
    sys.stdout.write(json.dumps(result) + "\n")
    sys.stdout.flush()
    return 0 if result["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
