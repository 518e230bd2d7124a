"""Settings of the drive connector, and the one way to ask the API with them.

The server and verify.py both go through this file, so what verify has proved is what the
server does. Values come from the environment; the credential keeps its secrets to itself.
"""

import google_api
import google_http

SERVICE = {"title": "Google Drive API", "library": "https://console.cloud.google.com/apis/library/drive.googleapis.com"}


class Settings:
    """The checked settings. Raises google_http.GoogleError."""

    def __init__(self, env):
        self.base = google_http.address("DRIVE_API_URL", env.get("DRIVE_API_URL"), "https://www.googleapis.com")
        self.credential = google_api.Credential(env.get("DRIVE_CREDS_JSON"), "DRIVE_CREDS_JSON")
        self.files_dir = env.get("DRIVE_FILES_DIR", "")

    def client(self):
        """Return a client for the API."""
        return google_api.Client(self.credential, SERVICE, self.base, "skald-drive/1.0")
