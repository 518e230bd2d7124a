"""Asking Google's APIs: the credential, its refresh, errors in plain words, retries.

The same file stands in the Google connectors; a test keeps the copies equal. Rules:

- The credential is the google_authorized_user JSON of an environment variable. An access
  token is made from it when there is none, when it is about to end, and once when the
  API answers 401; threads that need one wait for the same refresh.
- Tokens go to the base address of the API and the token address only, both https unless
  they are on this machine. No redirect is followed.
- "Too many requests" is waited for and asked again, as long as Retry-After allows; an
  outage (5xx, a dropped connection) only where asking twice does no harm.
- Every answer has a limit; what Google says in an error is shortened and made one line.

Error bodies: https://cloud.google.com/apis/design/errors and the older form with
error.errors[].reason. Python 3.9 or later, standard library only.
"""

import calendar
import json
import re
import threading
import time
import urllib.parse

from google_http import MAX_ANSWER, MAX_ERROR, MAX_WAIT, PASSING, TRIES, GoogleError, address, backoff, exchange, new_opener, \
    object_in, one_line, pause_in

EARLY = 60              # seconds before its end a token is not used any more
TOKEN_URI = "https://oauth2.googleapis.com/token"
BUSY = {"rateLimitExceeded", "userRateLimitExceeded", "RATE_LIMIT_EXCEEDED", "sharingRateLimitExceeded"}


# ---------------------------------------------------------------- the credential

class Credential:
    """The delivered credential and the access token that is made from it."""

    def __init__(self, text, name, sleep=time.sleep):
        if not (text or "").strip():
            raise GoogleError("signin", "not signed in: %s is empty; sign in with Google first" % name)
        try:
            fields = json.loads(text)
        except (ValueError, RecursionError):
            fields = None
        if not isinstance(fields, dict):
            raise GoogleError("signin", "%s does not hold a Google credential (JSON of the kind authorized_user)" % name)
        if fields.get("type", "authorized_user") != "authorized_user":
            raise GoogleError("signin", "%s holds a credential of another kind than authorized_user" % name)
        for field in ("client_id", "refresh_token"):
            if not isinstance(fields.get(field), str) or not fields[field]:
                raise GoogleError("signin", "the credential in %s has no %s; sign in again" % (name, field))
        self._form = {"grant_type": "refresh_token", "client_id": fields["client_id"],
                      "refresh_token": fields["refresh_token"]}
        if isinstance(fields.get("client_secret"), str) and fields["client_secret"]:
            self._form["client_secret"] = fields["client_secret"]
        self._uri = address("token_uri of the credential", fields.get("token_uri"), TOKEN_URI)
        self._token = fields["token"] if _sendable(fields.get("token")) else ""
        self._until = _moment(fields.get("expiry"))
        self._granted = None  # the scopes that Google named at the last refresh
        self._sleep = sleep
        self._lock = threading.Lock()
        self._opener = new_opener()
        self.on_token = lambda: None  # called when the secrets have changed

    def __repr__(self):
        return "Credential()"

    def secrets(self):
        """Return what no log and no answer may hold."""
        return [v for v in (self._form["refresh_token"], self._form.get("client_secret"), self._token) if v]

    def token(self, stale=""):
        """Return an access token that still lives and is not stale. Raises GoogleError."""
        with self._lock:
            if self._token and self._token != stale and time.time() < self._until - EARLY:
                return self._token
            self._refresh()
            self.on_token()
            return self._token

    def require(self, *scopes):
        """Refresh, which proves that the sign-in lives, and raise GoogleError when Google names
        the granted scopes and one of these is not among them."""
        with self._lock:
            self._refresh()
            self.on_token()
        missing = [s for s in scopes if self._granted is not None and s not in self._granted]
        if missing:
            raise GoogleError("scope", "a permission (scope) is missing: %s; sign in again and leave every box ticked on "
                              "Google's consent page" % ", ".join(missing))

    def _refresh(self):
        data = urllib.parse.urlencode(self._form).encode("ascii")
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
        for attempt in range(TRIES):
            try:
                status, head, body = exchange(self._opener, "POST", self._uri, data, headers, MAX_ERROR)
                problem = None if status == 200 else self._refused(status, head, body)
            except GoogleError as e:
                problem = e
            if problem is None:
                return self._take(body)
            pause = backoff(attempt) if problem.pause is None else problem.pause
            if problem.kind not in PASSING or attempt == TRIES - 1 or pause > MAX_WAIT:
                raise problem
            self._sleep(pause)

    @staticmethod
    def _refused(status, head, body):
        answer = object_in(body)
        code, said = one_line(answer.get("error", ""), 60), one_line(answer.get("error_description", ""), 200)
        if code == "invalid_grant":
            return GoogleError("signin", "Google does not accept this sign-in any more, it has expired or was revoked"
                               "%s; sign in again" % (" (%s)" % said if said else ""), status)
        if code in ("invalid_client", "unauthorized_client", "deleted_client", "disabled_client"):
            return GoogleError("client", "Google does not know the client id and secret of this sign-in (%s); check them "
                               "in the Google Cloud console and sign in again" % (said or code), status)
        if status == 429 or status >= 500:
            return GoogleError("busy" if status == 429 else "outage",
                               "Google's sign-in service answered %d; try again later" % status, status, pause_in(head))
        return GoogleError("signin", "Google refused to renew the sign-in: %s; sign in again"
                           % (said or code or "it answered %d" % status), status)

    def _take(self, body):
        answer = object_in(body)
        token = answer.get("access_token")
        if not _sendable(token):
            raise GoogleError("answer", "Google's sign-in service answered without an access token")
        if isinstance(answer.get("refresh_token"), str) and answer["refresh_token"]:
            self._form["refresh_token"] = answer["refresh_token"]
        if isinstance(answer.get("scope"), str) and answer["scope"].strip():
            self._granted = answer["scope"].split()
        try:
            seconds = min(float(answer.get("expires_in", 3600)), 86400)
        except (TypeError, ValueError):
            seconds = 3600
        self._token, self._until = token, time.time() + (seconds if seconds > 0 else 3600)


def _sendable(token):
    return isinstance(token, str) and bool(re.match(r"^[!-~]{1,8192}\Z", token))


def _moment(text):
    """Return the seconds of an RFC 3339 time in UTC; without one, a moment long past."""
    match = re.match(r"^(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:[Zz]|\+00:00)?$", str(text or ""))
    try:
        return calendar.timegm(tuple(map(int, match.groups()))) if match else 0
    except (ValueError, OverflowError):
        return 0


# ---------------------------------------------------------------- what went wrong

def explain(service, status, head, body):
    """Return the GoogleError for an error answer. service is {"title", "library"}: the name
    of the API and where it is enabled."""
    error = object_in(body).get("error")
    error = error if isinstance(error, dict) else {}
    said = one_line(error.get("message", ""))
    reasons = {str(i.get("reason")) for key in ("errors", "details") for i in _list(error.get(key)) if i.get("reason")}
    title, pause = service["title"], pause_in(head)
    if status == 401:
        return GoogleError("signin", "Google does not accept this sign-in; sign in again", status)
    if status == 403 and (reasons & {"insufficientPermissions", "ACCESS_TOKEN_SCOPE_INSUFFICIENT"} or
                          "insufficient_scope" in (head.get("WWW-Authenticate") or "")):
        return GoogleError("scope", "a permission (scope) is missing: sign in again and leave every box ticked on Google's "
                           "consent page", status)
    if status == 403 and reasons & {"accessNotConfigured", "SERVICE_DISABLED"}:
        return GoogleError("disabled", "the %s is not enabled in the Google Cloud project of your client; enable it at %s "
                           "and try again after a few minutes" % (title, _activation(error) or service["library"]), status)
    if status == 429 or status == 403 and reasons & BUSY:
        return GoogleError("busy", "Google limits how often the %s may be asked; try again %s"
                           % (title, "in %d seconds" % pause if pause else "later"), status, pause)
    if status == 403 and reasons & {"dailyLimitExceeded", "quotaExceeded", "storageQuotaExceeded"}:
        return GoogleError("quota", "a limit of the Google account or project is used up: %s" % (said or "no details"), status)
    if status == 403 and reasons & {"domainPolicy", "ADMIN_POLICY_ENFORCED"}:
        return GoogleError("denied", "the administrator of this Google account does not allow the %s" % title, status)
    if status >= 500:
        return GoogleError("outage", "the %s has an outage (%d); try again later" % (title, status), status, pause)
    if 300 <= status < 400:
        return GoogleError("answer", "the %s redirects, which is not followed" % title, status)
    if not error and body.lstrip()[:1] == b"<":
        said = "a web page instead of data; a sign-in page or a proxy may be in between"
    kind = {403: "denied", 404: "missing", 409: "conflict", 410: "gone", 412: "conflict"}.get(status, "input")
    return GoogleError(kind, "the %s answered %d: %s" % (title, status, said or "no details"), status)


def _list(value):
    return [i for i in value if isinstance(i, dict)] if isinstance(value, list) else []


def _activation(error):
    """Return the console address that an error names, when it is one of Google's."""
    for detail in _list(error.get("details")):
        for link in _list(detail.get("links")):
            url = str(link.get("url", ""))
            if re.match(r"^https://console\.(developers|cloud)\.google\.com/[!-~]{0,300}\Z", url):
                return url
    return ""


# ---------------------------------------------------------------- the client

class Client:
    """Asks one API. service is as for explain, base its checked address."""

    def __init__(self, credential, service, base, user_agent, sleep=time.sleep):
        self.credential, self.base = credential, base
        self._service, self._agent, self._sleep = service, user_agent, sleep
        self._opener = new_opener()

    def url(self, path, params=None):
        """Return the address of a path below the base; None values are left out, lists repeated."""
        pairs = [(k, str(v).lower() if isinstance(v, bool) else v) for k, v in (params or {}).items() if v is not None]
        return self.base + path + ("?" + urllib.parse.urlencode(pairs, doseq=True) if pairs else "")

    def call(self, method, path, params=None, body=None, repeatable=None, limit=MAX_ANSWER):
        """Return the JSON object that the API answers; {} for an empty answer. repeatable
        says that asking twice does no harm; it defaults to what the method promises."""
        data, headers = None, {"Accept": "application/json"}
        if body is not None:
            data = json.dumps(body).encode("ascii")
            headers["Content-Type"] = "application/json; charset=UTF-8"
        elif method in ("POST", "PUT", "PATCH"):
            data = b""
        repeatable = method in ("GET", "PUT", "DELETE") if repeatable is None else repeatable
        _, _, answer = self.ask(method, self.url(path, params), data, headers, repeatable, limit)
        return self.parse(answer)

    def parse(self, answer):
        """Return the JSON object in the bytes of an answer."""
        if not answer.strip():
            return {}
        value = object_in(answer)
        if not value and answer.strip() != b"{}":
            raise GoogleError("answer", "the %s answered with something that is not JSON" % self._service["title"])
        return value

    def ask(self, method, url, data, headers, repeatable, limit, sink=None):
        """Return (status, headers, body) of a success (2xx, 308). Raises GoogleError."""
        stale, attempt, waited = "", 0, 0.0
        while True:
            token = self.credential.token(stale)
            sent = dict(headers, **{"Authorization": "Bearer " + token, "User-Agent": self._agent})
            try:
                status, head, body = exchange(self._opener, method, url, data, sent, limit, sink)
                if 200 <= status < 300 or status == 308:
                    return status, head, body
                problem = explain(self._service, status, head, body)
            except GoogleError as e:
                problem = e
            if problem.status == 401 and not stale:
                stale = token
                continue
            again = problem.kind == "busy" or repeatable and problem.kind in PASSING
            pause = backoff(attempt) if problem.pause is None else problem.pause
            if not again or sink is not None or attempt >= TRIES - 1 or waited + pause > MAX_WAIT:
                if method != "GET" and not repeatable and problem.kind in ("outage", "unreachable"):
                    problem.args = ("%s; whether it was done is not known, look before you try again" % problem,)
                raise problem
            attempt, waited = attempt + 1, waited + pause
            self._sleep(pause)
