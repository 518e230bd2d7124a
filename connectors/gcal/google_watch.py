"""Looking for changes from time to time, in a thread of its own, without ever giving up the server.

The same file stands in the Google connectors that announce changes; a test keeps the
copies equal. What another try does not mend, such as a revoked sign-in, ends the watch and
is said once in the log; everything else is tried again, ever more rarely.
"""

from mcp_stdio import ToolError

RETRY_SECONDS = (5, 15, 60, 300)  # after a failure; the last one is repeated
FINAL = ("signin", "client", "scope", "disabled", "setting", "denied")  # kinds that another try does not mend
MAX_BURST = 20  # changes announced one by one at a look; of more, the last ones


class Watcher:
    """Run watch() in a thread. client is the google_api.Client, server the mcp_stdio.Server to
    notify. A subclass has look() and the name of what it watches."""

    watched = ""

    def __init__(self, client, server, seconds):
        self.client, self.server, self.seconds = client, server, seconds

    def look(self):
        """Announce what is new since the last look; the first one only remembers where it is."""
        raise NotImplementedError

    def watch(self):
        """Watch until the server stops; never raises."""
        failures = 0
        self.server.initialized.wait()
        self.server.log("watching %s (every %d s)" % (self.watched, self.seconds))
        while not self.server.stopping.is_set():
            pause = self.seconds
            try:
                self.look()
                failures = 0
            except (ToolError, ValueError, TypeError, AttributeError, KeyError) as e:
                kind = getattr(e, "kind", "")
                if kind in FINAL:
                    self.server.log("watching %s: %s; nothing is announced until the connector is started again" % (self.watched, e))
                    return
                pause = max(self.seconds if kind == "busy" else 0, RETRY_SECONDS[min(failures, len(RETRY_SECONDS) - 1)])
                failures += 1
                self.server.log("watching %s: %s; next try in %d s" % (self.watched, e if kind else type(e).__name__, pause))
            self.server.stopping.wait(pause)

    def burst(self, found):
        """Return the changes of a look that are announced one by one."""
        if len(found) > MAX_BURST:
            self.server.log("%d or more changes at once; the last %d are announced" % (len(found), MAX_BURST))
        return found[-MAX_BURST:]
