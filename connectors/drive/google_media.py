"""Files over Google's APIs: resumable uploads and downloads that go on after a dropped connection.

The same file stands in the Google connectors that need it; a test keeps the copies equal.
An upload is sent in pieces to a session address; after a failure the API is asked how
much of it arrived (https://developers.google.com/drive/api/guides/manage-uploads). A
download goes on with a Range request where the connection was dropped.
"""

import json
import re
import time
import urllib.parse

from google_http import MAX_ANSWER, MAX_WAIT, PASSING, TRIES, GoogleError, backoff

PIECE = 8 << 20  # bytes of one piece of an upload; a multiple of 256 KiB, as the API wants


def upload(client, method, path, params, metadata, kind, size, read, sleep=time.sleep):
    """Send size bytes of the media type kind, got by read(offset, count), and return the
    JSON object of the answer. path is that of the method without /upload."""
    session = _session(client, method, path, params, metadata, kind, size)
    offset, failures = 0, 0
    while True:
        data = read(offset, min(PIECE, size - offset))
        if len(data) != min(PIECE, size - offset):
            raise GoogleError("input", "the file changed while it was sent; nothing was stored")
        span = "%d-%d" % (offset, offset + len(data) - 1) if size else "*"
        try:
            status, head, body = _put(client, session, data, "bytes %s/%d" % (span, size), False)
        except GoogleError as e:
            failures += 1
            if e.kind not in PASSING or failures >= TRIES:
                raise
            sleep(backoff(failures) if e.pause is None else min(e.pause, MAX_WAIT))
            status, head, body = _put(client, session, b"", "bytes */%d" % size, True)
        if status != 308:
            return client.parse(body)
        arrived = _arrived(head)
        if arrived <= offset:
            failures += 1
            if failures >= 2 * TRIES:
                raise GoogleError("answer", "the upload makes no progress; nothing was stored")
        else:
            failures = 0
        offset = min(arrived, size)


def _session(client, method, path, params, metadata, kind, size):
    headers = {"Content-Type": "application/json; charset=UTF-8", "X-Upload-Content-Type": kind,
               "X-Upload-Content-Length": str(size)}
    url = client.url("/upload" + path, dict(params, uploadType="resumable"))
    _, head, _ = client.ask(method, url, json.dumps(metadata).encode("ascii"), headers, True, MAX_ANSWER)
    session = head.get("Location") or ""
    base, given = urllib.parse.urlsplit(client.base), urllib.parse.urlsplit(session)
    google = given.scheme == "https" and all(str(p.hostname).endswith(".googleapis.com") and p.port is None for p in (base, given))
    if (base.scheme, base.netloc) != (given.scheme, given.netloc) and not google:
        raise GoogleError("answer", "the API named an unexpected address for the upload; nothing was sent")
    return session


def _put(client, session, data, span, repeatable):
    try:
        return client.ask("PUT", session, data, {"Content-Range": span}, repeatable, MAX_ANSWER)
    except GoogleError as e:
        if e.kind in ("missing", "gone"):
            raise GoogleError("answer", "the API has forgotten the upload half way; nothing was stored", e.status) from None
        raise


def _arrived(head):
    match = re.match(r"^bytes=0-(\d{1,15})$", (head.get("Range") or "").strip())
    return int(match.group(1)) + 1 if match else 0


class _Sink:
    def __init__(self, file):
        self.file, self.offset = file, 0

    def begin(self, status):
        if status != 206:  # the whole, from its start
            self._do(lambda: (self.file.seek(0), self.file.truncate()))
            self.offset = 0

    def write(self, block):
        self._do(lambda: self.file.write(block))
        self.offset += len(block)

    @staticmethod
    def _do(work):
        try:
            work()
        except OSError as e:  # not to be taken for a failure of the network
            raise GoogleError("setting", "the file cannot be written: %s" % e.strerror) from None


def download(client, path, params, file, limit, sleep=time.sleep):
    """Write what is at path into a binary file, at most limit bytes; return their number."""
    sink = _Sink(file)
    for attempt in range(TRIES):
        headers = {"Range": "bytes=%d-" % sink.offset} if sink.offset else {}
        try:
            client.ask("GET", client.url(path, params), None, headers, True, limit - sink.offset, sink)
            return sink.offset
        except GoogleError as e:
            pause = backoff(attempt) if e.pause is None else e.pause
            if e.kind not in PASSING or attempt == TRIES - 1 or pause > MAX_WAIT:
                raise
            sleep(pause)
