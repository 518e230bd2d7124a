"""Proves the settings of the email connector: signs in to IMAP and to SMTP, changes nothing.

Prints one JSON line {"ok", "message", "details"} and exits with 0 when both sign-ins
worked. The message tells a wrong password from an unknown host, a closed port, a TLS
failure and a server that does not answer. Both servers are tried at the same time, so a
silent one costs its time limit only once.
"""

import json
import sys
import threading
import time

from email_config import ConfigError, ConnectError, from_environment, open_imap, open_smtp

LIMIT = 40  # seconds; below the manifest's timeout_secs


def probe_imap(settings):
    conn = open_imap(settings)
    try:
        status, data = conn.select("INBOX", readonly=True)
        if status != "OK":
            raise ConnectError("protocol", "signed in to IMAP, but the inbox cannot be opened")
        return "signed in as %s, %s messages in the inbox" % (settings.username, data[-1].decode("ascii", "replace"))
    finally:
        conn.shutdown()


def probe_smtp(settings):
    conn = open_smtp(settings)
    try:
        conn.noop()
        return "signed in as %s" % settings.username
    finally:
        conn.close()


def attempt(name, probe, settings, results):
    try:
        results[name] = (True, probe(settings), "")
    except (ConnectError, ConfigError) as e:
        results[name] = (False, str(e), getattr(e, "kind", "setting"))
    except Exception as e:  # whatever it was, the result must be told
        results[name] = (False, "%s: unexpected %s" % (name.upper(), type(e).__name__), "protocol")


def run():
    """Return the result object."""
    try:
        settings = from_environment()
    except (ConfigError, ValueError) as e:
        return {"ok": False, "message": str(e), "details": {"kind": "setting"}}
    results, threads = {}, []
    for name, probe in (("imap", probe_imap), ("smtp", probe_smtp)):
        threads.append(threading.Thread(target=attempt, args=(name, probe, settings, results), daemon=True))
        threads[-1].start()
    until = time.monotonic() + LIMIT
    for thread in threads:
        thread.join(max(0, until - time.monotonic()))
    for name in ("imap", "smtp"):
        results.setdefault(name, (False, "the %s server did not answer within %d seconds" % (name.upper(), LIMIT), "timeout"))
    details = {name: text for name, (_, text, _) in results.items()}
    failed = [results[name] for name in ("imap", "smtp") if not results[name][0]]
    if not failed:
        return {"ok": True, "message": "IMAP and SMTP sign-in worked", "details": details}
    details["kind"] = failed[0][2]
    return {"ok": False, "message": "; ".join(text for _, text, _ in failed), "details": details}


def main():
    result = run()
    sys.stdout.write(json.dumps(result) + "\n")
    sys.stdout.flush()
    return 0 if result["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
