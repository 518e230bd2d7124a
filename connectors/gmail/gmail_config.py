"""Settings of the gmail connector, and the one way to ask the API with them.

The server and verify.py both go through this file, so what verify has proved is what the
server does. Values come from the environment; the credential keeps its secrets to itself.
"""

import google_api
import google_http

SERVICE = {"title": "Gmail API", "library": "https://console.cloud.google.com/apis/library/gmail.googleapis.com"}
POLL_SECONDS = 60  # between two looks for new mail


class Settings:
    """The checked settings. Raises google_http.GoogleError."""

    def __init__(self, env):
        self.base = google_http.address("GMAIL_API_URL", env.get("GMAIL_API_URL"), "https://gmail.googleapis.com")
        self.credential = google_api.Credential(env.get("GMAIL_CREDS_JSON"), "GMAIL_CREDS_JSON")
        self.files_dir = env.get("GMAIL_FILES_DIR", "")
        self.push = google_http.flag("GMAIL_PUSH", env.get("GMAIL_PUSH"), True)
        # Not offered in the form: how often to look for new mail.
        self.poll_seconds = google_http.seconds("GMAIL_POLL_SECONDS", env.get("GMAIL_POLL_SECONDS"), POLL_SECONDS)

    def client(self):
        """Return a client for the API."""
        return google_api.Client(self.credential, SERVICE, self.base, "skald-gmail/1.0")
