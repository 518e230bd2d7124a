"""What the suites of the Google connectors share: the double, its settings, and the tests that
hold for every one of them (sign-in, refresh, errors, retries, the folder for files)."""

import importlib
import json
import os
import queue
import sys
import tempfile
import threading

from google_double import CLIENT_SECRET, Double, disabled, missing_scope, outage, rate_limited
from google_double_drive import Drive
from google_double_gcal import Calendar
from google_double_gmail import Gmail
from stdio_client import ROOT, ServerTest


def everything():
    """Return the services of a double that has all of them."""
    return [Gmail(), Calendar(), Drive()]


class GoogleTest(ServerTest):
    """A suite with a double. A subclass names variable (GMAIL …), service (its class in the double),
    probe (a tool without arguments that asks the API once) and pattern (that request)."""

    variable, service, probe, pattern = "", None, "", ""

    def setUp(self):
        self.api = self.service()
        self.double = Double(self.api)
        self.addCleanup(self.double.close)
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.files = os.path.join(os.path.realpath(place.name), "granted")
        self.outside = os.path.join(os.path.realpath(place.name), "outside.txt")
        os.mkdir(self.files)
        self.write(self.outside, b"OUTSIDE-CANARY")

    def environment(self, **more):
        env = {"CREDS_JSON": self.double.credential(), "API_URL": self.double.url, "FILES_DIR": self.files, "PUSH": "false"}
        return {"%s_%s" % (self.variable, k): v for k, v in dict(env, **more).items()}

    @staticmethod
    def write(path, data):
        with open(path, "wb") as f:
            f.write(data)

    def read(self, name):
        with open(os.path.join(self.files, name), "rb") as f:
            return f.read()

    def here(self, **more):
        """Return a function that asks the API once, by the connector's own client in this process."""
        sys.path.insert(0, os.path.join(ROOT, self.connector))
        try:
            api = importlib.import_module("google_api")
        finally:
            sys.path.pop(0)
        credential = api.Credential(self.double.credential(**more), "X_CREDS_JSON")
        client = api.Client(credential, {"title": self.api.title, "library": ""}, self.double.url, "skald-test/1")
        return lambda: client.call("GET", self.path)

    def notification(self, client):
        message = client.notifications.get(timeout=30)
        return message["method"], message["params"]

    def silent(self, client):
        self.assertRaises(queue.Empty, client.notifications.get, timeout=0.1)


class SignInTests:
    """Mixed into each suite."""

    def test_one_token_serves_many_calls(self):
        client = self.start()
        for _ in range(3):
            self.ok(client, self.probe)
        self.assertEqual(self.double.refreshes, 1)
        self.assertTrue(self.double.asked(self.pattern)[0][2]["User-Agent"].startswith("skald-"))

    def test_a_delivered_token_is_used_while_it_lives(self):
        token = self.double.give_token()
        client = self.start(self.environment(CREDS_JSON=self.double.credential(token=token, expiry="2099-01-01T00:00:00.5Z")))
        self.ok(client, self.probe)
        self.assertEqual(self.double.refreshes, 0)
        client = self.start(self.environment(CREDS_JSON=self.double.credential(token=token, expiry="2020-01-01T00:00:00Z")))
        self.ok(client, self.probe)
        self.assertEqual(self.double.refreshes, 1)

    def test_401_refreshes_once(self):
        client = self.start(self.environment(CREDS_JSON=self.double.credential(token="ya29.unknown", expiry="2099-01-01T00:00:00Z")))
        self.ok(client, self.probe)
        self.assertEqual((self.double.refreshes, len(self.double.asked(self.pattern))), (1, 2))
        self.double.tokens.clear()
        self.ok(client, self.probe)
        self.assertEqual(self.double.refreshes, 2)
        self.double.extra = {"access_token": "ya29.never-good"}
        self.double.tokens.clear()
        self.fails(client, self.probe, "Google does not accept this sign-in; sign in again")
        self.assertEqual((self.double.refreshes, len(self.double.asked(self.pattern))), (3, 6))

    def test_odd_lifetimes(self):
        for odd in (None, 0, -5, "soon", "3600", 10 ** 12, [], True):
            self.double.expires_in = odd
            self.here()()
        self.double.expires_in = 30  # less than the margin: every call needs a new one
        ask, before = self.here(), self.double.refreshes
        ask()
        ask()
        self.assertEqual(self.double.refreshes, before + 2)

    def test_a_revoked_sign_in(self):
        self.double.refresh_token = "1//another"
        env = self.environment(CREDS_JSON=self.double.credential(refresh_token="1//revoked-canary"))
        client = self.start(env)
        text = self.fails(client, self.probe, "it has expired or was revoked (Token has been expired or revoked.); sign in again")
        code, result, said = self.run_verify(env)
        self.assertEqual((code, result["details"]["kind"]), (1, "signin"))
        for shown in (text, said, client.log()):
            self.assertNotIn("canary", shown)

    def test_an_unknown_client(self):
        env = self.environment(CREDS_JSON=self.double.credential(client_id="nobody"))
        self.fails(self.start(env), self.probe, "does not know the client id and secret of this sign-in (The OAuth client was not found.)")

    def test_unusable_credentials(self):
        for text, words in (("", "not signed in"), ("nonsense", "does not hold a Google credential"), ("[]", "does not hold"),
                            ('{"type":"service_account"}', "of another kind"), ('{"client_id":"x"}', "has no refresh_token"),
                            ('{"client_id":"x","refresh_token":7}', "has no refresh_token"),
                            (self.double.credential(token_uri="http://example.org/token"), "must be an https address"),
                            (self.double.credential(token_uri="https://u:p@example.org"), "must be an https address")):
            env = self.environment(CREDS_JSON=text)
            code, result, said = self.run_verify(env)
            self.assertEqual((code, result["ok"]), (1, False))
            self.assertIn(words, result["message"])
            self.assertNotIn(CLIENT_SECRET, said)
        self.fails(self.start(self.environment(CREDS_JSON="")), self.probe, "not signed in")
        for url in ("http://example.org", "https://a@b"):
            self.fails(self.start(self.environment(API_URL=url)), self.probe, "API_URL must be an https address")

    def test_odd_token_answers(self):
        for answer, words in (((200, {}, {"access_token": 7}), "without an access token"), ((200, {}, b"<html>"), "without an access token"),
                              ((200, {}, {"access_token": "a\r\nX: y"}), "without an access token"),
                              ((302, {"Location": "http://example.invalid/"}, b""), "it answered 302"),
                              ((400, {}, {"error": "invalid_request", "error_description": "x\r\ny"}), "renew the sign-in: x y;"),
                              ((429, {"Retry-After": "9999"}, {}), "answered 429; try again later")):
            self.double.token_answers = [answer]
            with self.assertRaises(Exception) as caught:
                self.here()()
            self.assertIn(words, str(caught.exception))
        self.double.token_answers = [(500, {"Retry-After": "0"}, b"")] * 3
        self.here()()

    def test_secrets_are_never_told(self):
        client = self.start()
        self.ok(client, self.probe)
        token = list(self.double.tokens)[-1]
        self.double.fail(self.pattern, _echo("%s %s %s" % (token, self.double.refresh_token, CLIENT_SECRET)))
        text = self.fails(client, self.probe, "[redacted] [redacted] [redacted]")
        client.close()
        for secret in (token, self.double.refresh_token, CLIENT_SECRET):
            self.assertNotIn(secret, text + client.raw.decode() + client.log())


class ErrorTests:
    """Mixed into each suite."""

    def test_missing_scope(self):
        self.double.scopes = ["openid"]
        self.fails(self.start(), self.probe, "a permission (scope) is missing: sign in again and leave every box ticked")
        code, result, _ = self.run_verify(self.environment())
        self.assertEqual((code, result["details"]["kind"]), (1, "scope"))

    def test_narrower_scope_is_found_by_verify(self):
        self.double.scopes = self.narrow
        code, result, _ = self.run_verify(self.environment())
        self.assertEqual((code, result["details"]["kind"]), (1, "scope"), result)
        self.assertIn("a permission (scope) is missing: https://www.googleapis.com/auth/", result["message"])

    def test_api_not_enabled(self):
        self.double.disabled.add(self.api.service)
        link = "enable it at https://console.developers.google.com/apis/api/%s/overview?project=1234" % self.api.service
        self.fails(self.start(), self.probe, link)
        code, result, _ = self.run_verify(self.environment())
        self.assertEqual((code, result["details"]["kind"]), (1, "disabled"))
        hostile = disabled(self.api.service, self.api.title)
        hostile.body["error"]["details"][0]["links"][0]["url"] = "https://evil.example/"
        self.double.disabled.clear()
        self.double.fail(self.pattern, hostile)
        self.assertNotIn("evil.example/ and", self.fails(self.start(), self.probe, "enable it at https://console.cloud.google.com/"))

    def test_busy_is_waited_for(self):
        client = self.start()
        dated = rate_limited("Mon, 01 Jan 2024 00:00:00 GMT")
        old = rate_limited()
        old.code, old.body["error"]["code"] = 403, 403
        self.double.fail(self.pattern, rate_limited(), dated, old)
        self.ok(client, self.probe)
        self.assertEqual(len(self.double.asked(self.pattern)), 4)
        self.double.fail(self.pattern, rate_limited("3600"))
        self.fails(client, self.probe, "limits how often the %s may be asked; try again in 3600 seconds" % self.api.title)
        self.double.fail(self.pattern, *[rate_limited()] * 4)
        self.fails(client, self.probe, "try again later")

    def test_outages_of_reading_are_tried_again(self):
        client = self.start()
        self.double.fail(self.pattern, outage(), outage(500), "drop")
        self.ok(client, self.probe)
        self.double.fail(self.pattern, *[outage()] * 4)
        self.fails(client, self.probe, "has an outage (503)")
        self.double.fail(self.pattern, 10)  # an answer that breaks off
        self.ok(client, self.probe)

    def test_odd_answers(self):
        client = self.start()
        for code, body, words in ((200, b"<html>", "not JSON"), (200, b"[]", "not JSON"), (404, b"<html>", "a web page instead"),
                                  (403, b"", "answered 403: no details"), (400, {"error": {"message": "a\r\n\x1b[2Jb"}}, "400: a [2Jb"),
                                  (302, b"", "redirects, which is not followed"), (400, {"error": []}, "no details"),
                                  (200, b" " * (17 << 20), "more than 16777216 bytes")):
            self.double.fail(self.pattern, _odd(code, body))
            self.fails(client, self.probe, words)

    def test_no_network(self):
        env = self.environment(API_URL="http://127.0.0.1:1")
        code, result, _ = self.run_verify(env)
        self.assertEqual((code, result["details"]["kind"], result["message"]), (1, "offline", "127.0.0.1 refused the connection"))

    def test_verify(self):
        code, result, said = self.run_verify(self.environment())
        self.assertEqual((code, result["ok"], result["message"]), (0, True, "signed in as ada@example.test"))
        self.assertNotIn(self.double.refresh_token, said)


class FolderTests:
    """Mixed into the suites of connectors with files. send(client, name) calls a tool that reads a file,
    receive(client, name) one that saves DATA under that name; each returns (text, failed?)."""

    def test_what_is_read_comes_from_the_folder(self):
        client = self.start()
        self.write(os.path.join(self.files, "good.txt"), b"good")
        os.mkdir(os.path.join(self.files, "sub"))
        self.write(os.path.join(self.files, "sub", "\u00e8.txt"), b"good")
        os.symlink(self.outside, os.path.join(self.files, "link.txt"))
        os.symlink(os.path.dirname(self.outside), os.path.join(self.files, "up"))
        os.symlink("good.txt", os.path.join(self.files, "inner.txt"))
        os.mkfifo(os.path.join(self.files, "pipe"))
        for name in ("good.txt", "sub/\u00e8.txt", os.path.join(self.files, "good.txt")):
            text, failed = self.send(client, name)
            self.assertFalse(failed, text)
        for name, words in (("../outside.txt", "not the name of a file inside"), (self.outside, "not the name"), ("/etc/passwd", "not the name"),
                            ("sub/../../outside.txt", "not the name"), ("./good.txt", "not the name"), ("", "empty"),
                            ("link.txt", "a link, which is not followed"), ("up/outside.txt", "cannot be read"),
                            ("inner.txt", "a link"), ("pipe", "is not a file"), ("sub", "is not a file"), ("none", "No such file"),
                            ("a\r\nb", "not the name"), ("a\0b", "not the name"), ("good.txt/", "not the name")):
            text, failed = self.send(client, name)
            self.assertTrue(failed, name)
            self.assertIn(words, text, name)
            self.assertNotIn("CANARY", text)
        self.assertFalse([r for r in self.double.requests if b"OUTSIDE-CANARY" in r[3] or b"T1VUU0lERS1DQU5BUl" in r[3]])

    def test_what_is_saved_stays_in_the_folder(self):
        client = self.start()
        os.symlink(self.outside, os.path.join(self.files, "link.txt"))
        for name, want in (("../up.txt", "_up.txt"), ("/etc/cron.d/x", "_etc_cron.d_x"), ("con.txt", "_con.txt"),
                           ("a\u202eb.txt", "a_b.txt"), ("..", "file"), ("link.txt", "link (2).txt"), ("\u00e8.txt", "\u00e8.txt")):
            text, failed = self.receive(client, name)
            self.assertFalse(failed, text)
            saved = json.loads(text)["saved"]
            if want != "file":
                self.assertEqual(saved, want)
            self.assertEqual(self.read(saved), self.DATA)
        self.assertEqual(json.loads(self.receive(client, "\u00e8.txt")[0])["saved"], "\u00e8 (2).txt")
        with open(self.outside, "rb") as f:
            self.assertEqual(f.read(), b"OUTSIDE-CANARY")
        self.assertFalse([n for n in os.listdir(self.files) if n.startswith(".part")])

    def test_verify_looks_at_the_folder(self):
        code, result, _ = self.run_verify(self.environment(FILES_DIR=self.files + "/none"))
        self.assertEqual((code, result["details"]["kind"]), (1, "setting"))
        self.assertEqual(self.run_verify(self.environment(FILES_DIR=""))[0], 0)

    def test_without_a_folder(self):
        for folder, words in (("", "no folder for files is set"), (self.files + "/none", "does not exist"),
                              ("/", "a folder of its own"), (os.environ.get("HOME", "/"), "a folder of its own")):
            client = self.start(self.environment(FILES_DIR=folder))
            for text, failed in (self.send(client, "good.txt"), self.receive(client, "x")):
                self.assertTrue(failed)
                self.assertIn(words, text)


def _echo(text):
    return _odd(400, {"error": {"code": 400, "message": text}})


def _odd(code, body):
    refusal = outage()
    refusal.code, refusal.body, refusal.headers = code, body, {}
    return refusal


class SingleFlightTests:
    """Mixed into each suite: the shared client, in this process."""

    def test_refreshes_are_shared(self):
        ask = self.here()
        for rounds in (1, 2):
            threads = [threading.Thread(target=ask) for _ in range(12)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(self.double.refreshes, rounds)
            self.double.tokens.clear()
