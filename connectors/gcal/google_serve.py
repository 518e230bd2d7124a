"""Starting a server of the Google connectors, and telling what keeps it from working.

The same file stands in the Google connectors; a test keeps the copies equal. A server
whose settings or sign-in cannot be used starts all the same, and each tool gives the
reason: that way the client hears it.
"""

import os
import threading

from google_http import GoogleError
from mcp_stdio import Server, ToolError

MAX_SECRETS = 20  # the last access tokens that are kept out of answers and logs


def serve(info, tools, instructions, settings_of, work_of, watcher_of=None):
    """Serve until the input ends and return the exit code. settings_of(environment) gives
    the settings, work_of(settings, client) the object with a method for each tool, and
    watcher_of(client, server, seconds) what announces changes."""
    try:
        settings = settings_of(os.environ)
    except GoogleError as e:
        server = Server(info, tools, _refusing(tools, str(e)), instructions)
        server.log(str(e))
        return server.run()
    credential = settings.credential
    server = Server(info, tools, {}, instructions, credential.secrets())

    def keep():
        server.secrets = sorted(set(server.secrets[-MAX_SECRETS:]) | set(credential.secrets()), key=len, reverse=True)
    credential.on_token = keep
    client = settings.client()
    work = work_of(settings, client)
    server.dispatch = {tool["name"]: getattr(work, tool["name"]) for tool in tools}
    if watcher_of is not None and settings.push:
        threading.Thread(target=watcher_of(client, server, settings.poll_seconds).watch, daemon=True).start()
    return server.run()


def _refusing(tools, reason):
    def refuse(_args):
        raise ToolError(reason)
    return {tool["name"]: refuse for tool in tools}


def paged(out, answer):
    """Return out without empty values, with the page token of an answer as next_page."""
    if answer.get("nextPageToken"):
        out["next_page"] = answer["nextPageToken"]
    return {k: v for k, v in out.items() if v is not None}
