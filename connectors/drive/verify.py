"""Proves the sign-in of the drive connector: asks the API who it is, changes nothing.

Prints one JSON line {"ok", "message", "details"} and exits with 0 when Google Drive
answered. The message tells a missing or revoked sign-in from a missing permission, an API
that is not enabled, and a network that does not work.
"""

import json
import os
import sys

from drive_config import Settings
from google_http import GoogleError
from google_files import Folder
from mcp_stdio import ToolError

SCOPE = "https://www.googleapis.com/auth/drive"


def run():
    """Return the result object."""
    try:
        settings = Settings(os.environ)
        user = settings.client().call("GET", "/drive/v3/about", {"fields": "user"}).get("user") or {}
        if settings.files_dir.strip():
            Folder(settings.files_dir, "DRIVE_FILES_DIR").root()
        # Reading works with narrower permissions; what Google says it granted tells of the others.
        settings.credential.require(SCOPE)
    except GoogleError as e:
        return {"ok": False, "message": str(e), "details": {"kind": e.kind}}
    except ToolError as e:
        return {"ok": False, "message": str(e), "details": {"kind": "setting"}}
    return {"ok": True, "message": "signed in as %s" % user.get("emailAddress"), "details": {}}


def main():
    result = run()
    sys.stdout.write(json.dumps(result) + "\n")
    sys.stdout.flush()
    return 0 if result["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
