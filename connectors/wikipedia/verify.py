"""Searches the wiki once with the user's settings.

Prints one JSON line {"ok", "message", "details"}; exit code 0 when the wiki answered.
"""

import json
import os
import sys

import api_client
from mcp_stdio import ToolError
from wikipedia_mcp_server import from_environment


def run():
    """Return the result object."""
    try:
        wiki = from_environment(os.environ)
    except api_client.ApiError as e:
        return {"ok": False, "message": str(e)}
    api_client.TIMEOUT = 12  # stay below the time limit of verify
    where = wiki.base or "%s.wikipedia.org" % wiki.language
    try:
        found = wiki.search({"query": "earth", "limit": 1})
    except ToolError as e:
        return {"ok": False, "message": str(e), "details": {"wiki": where}}
    return {"ok": True, "message": "%s answered" % where, "details": {"wiki": where, "hits": found["total"]}}


def main():
    result = run()
    sys.stdout.write(json.dumps(result) + "\n")
    sys.stdout.flush()
    return 0 if result["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
