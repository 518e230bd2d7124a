"""Settings of the gcal connector, and the one way to ask the API with them.

The server and verify.py both go through this file, so what verify has proved is what the
server does. Values come from the environment; the credential keeps its secrets to itself.
"""

import google_api
import google_http

SERVICE = {"title": "Google Calendar API",
           "library": "https://console.cloud.google.com/apis/library/calendar-json.googleapis.com"}
POLL_SECONDS = 60  # between two looks for changes


class Settings:
    """The checked settings. Raises google_http.GoogleError."""

    def __init__(self, env):
        self.base = google_http.address("GCAL_API_URL", env.get("GCAL_API_URL"), "https://www.googleapis.com")
        self.credential = google_api.Credential(env.get("GCAL_CREDS_JSON"), "GCAL_CREDS_JSON")
        self.push = google_http.flag("GCAL_PUSH", env.get("GCAL_PUSH"), True)
        # Not offered in the form: how often to look for changes.
        self.poll_seconds = google_http.seconds("GCAL_POLL_SECONDS", env.get("GCAL_POLL_SECONDS"), POLL_SECONDS)

    def client(self):
        """Return a client for the API."""
        return google_api.Client(self.credential, SERVICE, self.base, "skald-gcal/1.0")
