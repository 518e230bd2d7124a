"""How the email connector connects: encryption, refusals, dropped connections, new mail."""

import base64
import json
import os
import queue
import socket
import subprocess
import sys
import time
import unittest
import urllib.parse

from mailbox_helpers import ADA, BOB, MailTest, Proxy, Script, USERS
from stdio_client import ROOT
from test_email_tools import simple

GREETING = b"* OK [CAPABILITY IMAP4rev1 AUTH=PLAIN] ready\r\n"


class Connect(MailTest):
    def verify(self, **changes):
        env = self.settings(**changes)
        code, result, printed = self.run_verify(env)
        self.assertEqual(code, 0 if result["ok"] else 1)
        self.assertSilent(printed, env["EMAIL_PASSWORD"])
        return result

    def assertSilent(self, text, secret):
        if len(secret) < 4:
            return
        for form in (secret, json.dumps(secret)[1:-1], urllib.parse.quote(secret), base64.b64encode(secret.encode()).decode().rstrip("="),
                     base64.b64encode(("\0%s\0%s" % (ADA, secret)).encode()).decode()):
            self.assertNotIn(form, text)

    def fails_with(self, kind, words, **changes):
        result = self.verify(**changes)
        self.assertFalse(result["ok"], result)
        self.assertEqual(result["details"]["kind"], kind, result)
        self.assertIn(words, result["message"])
        return result

    def test_verify_over_every_kind_of_encryption(self):
        for imap, imap_security in (("imaps", "ssl"), ("imap", "starttls"), ("imap", "none"), ("imaps", None)):
            for smtp, smtp_security in (("smtps", "ssl"), ("smtp", "starttls"), ("smtps", "auto")):
                result = self.verify(EMAIL_IMAP_PORT=str(self.mail[imap]), EMAIL_IMAP_SECURITY=imap_security,
                                     EMAIL_SMTP_PORT=str(self.mail[smtp]), EMAIL_SMTP_SECURITY=smtp_security)
                self.assertEqual((result["ok"], result["message"]), (True, "IMAP and SMTP sign-in worked"), result)
        self.assertEqual(result["details"]["imap"], "signed in as ada@example.test, 0 messages in the inbox")

    def test_verify_names_what_is_wrong(self):
        self.fails_with("password", "the IMAP server refused user name or password", EMAIL_PASSWORD="wrong-password-9")
        self.fails_with("password", "refused user name or password", EMAIL_USERNAME="nobody@example.test")
        self.fails_with("host", "IMAP server mail.invalid:%d: there is no host of this name" % self.mail["imaps"], EMAIL_IMAP_HOST="mail.invalid")
        self.fails_with("host", "SMTP server mail.invalid", EMAIL_SMTP_HOST="mail.invalid")
        self.fails_with("refused", "refused the connection; nothing listens on port 1", EMAIL_IMAP_PORT="1")
        self.fails_with("tls", "certificate is not trusted", EMAIL_CA_FILE=None)
        self.fails_with("tls", "it may want starttls", EMAIL_IMAP_PORT=str(self.mail["imap"]))
        self.fails_with("tls", "it may want starttls", EMAIL_SMTP_PORT=str(self.mail["smtp"]))

    def test_smtp_server_without_sign_in(self):
        server = Script(b"220 mail.example.test ESMTP\r\n",
                        lambda line: b"250-mail\r\n250 SIZE 1000\r\n" if line.upper().startswith(b"EHLO") else b"502 no\r\n")
        self.addCleanup(server.close)
        self.fails_with("protocol", "offers no sign-in", EMAIL_SMTP_PORT=str(server.port), EMAIL_SMTP_SECURITY="none")
        self.fails_with("tls", "does not offer STARTTLS", EMAIL_SMTP_PORT=str(server.port), EMAIL_SMTP_SECURITY="starttls")

    def test_certificate_of_another_host(self):
        proxy = Proxy(self.mail["imaps"])
        self.addCleanup(proxy.close)
        self.fails_with("tls", "certificate is not trusted", EMAIL_IMAP_HOST="127.0.0.2" if os.name != "nt" else "localhost.",
                        EMAIL_IMAP_PORT=str(self.port_on("127.0.0.2")))

    def port_on(self, host):
        """A port on another loopback address that passes on to IMAP over TLS."""
        proxy = Proxy(self.mail["imaps"])
        proxy.listener.close()
        proxy.listener = socket.socket()
        proxy.listener.bind((host, 0))
        proxy.listener.listen(5)
        __import__("threading").Thread(target=proxy._accept, daemon=True).start()
        self.addCleanup(proxy.close)
        return proxy.listener.getsockname()[1]

    def test_settings_that_cannot_work(self):
        for changes, words in (({"EMAIL_IMAP_HOST": None}, "EMAIL_IMAP_HOST is not set"), ({"EMAIL_PASSWORD": " "}, "EMAIL_PASSWORD is not set"),
                               ({"EMAIL_IMAP_PORT": "993x"}, "must be a number from 1 to 65535"), ({"EMAIL_SMTP_PORT": "70000"}, "must be a number"),
                               ({"EMAIL_IMAP_HOST": "https://mail.example.org"}, "must be a host name"),
                               ({"EMAIL_IMAP_HOST": "imap.example.org", "EMAIL_IMAP_SECURITY": "none"}, "only for a server on this machine"),
                               ({"EMAIL_SMTP_HOST": "127.0.0.1.example.org", "EMAIL_SMTP_SECURITY": "none"}, "only for a server on this machine"),
                               ({"EMAIL_IMAP_SECURITY": "tls"}, "must be auto, ssl, starttls or none"), ({"EMAIL_PUSH": "maybe"}, "must be true or false"),
                               ({"EMAIL_PASSWORD": "two\nlines"}, "holds a line break"), ({"EMAIL_CA_FILE": "/no/such.pem"}, "EMAIL_CA_FILE cannot be used")):
            result = self.verify(**dict({"EMAIL_PASSWORD": "hush-hush-9"}, **changes))
            self.assertFalse(result["ok"])
            self.assertIn(words, result["message"])
            env = self.settings(**changes)
            if "CA_FILE" not in words:
                words = "the connector is not set up: "
            self.fails(self.start(env), "list_folders", words)

    def test_silent_server_is_a_timeout(self):
        silent = socket.socket()
        self.addCleanup(silent.close)
        silent.bind(("127.0.0.1", 0))
        silent.listen(5)
        port = str(silent.getsockname()[1])
        env = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", **self.settings(EMAIL_IMAP_PORT=port, EMAIL_SMTP_PORT=port))
        code = "import email_config; email_config.TIMEOUT = 1; import verify; verify.main()"
        done = subprocess.run([sys.executable, "-c", code], cwd=os.path.join(ROOT, "email"), env=env, stdout=subprocess.PIPE, timeout=60)
        result = json.loads(done.stdout.decode())
        self.assertEqual(result["details"]["kind"], "timeout", result)
        self.assertIn("did not answer within 1 seconds", result["details"]["smtp"])

    def test_clear_text_before_starttls_is_noticed(self):
        """A man in the middle puts an answer behind the go-ahead for TLS; it must not be believed."""
        def answer(line):
            tag = line.split()[0]
            if b"STARTTLS" in line:
                return tag + b" OK go\r\n* OK injected\r\n"
            return b"* CAPABILITY IMAP4rev1 STARTTLS AUTH=PLAIN\r\n" + tag + b" OK done\r\n"
        server = Script(b"* OK [CAPABILITY IMAP4rev1 STARTTLS] hi\r\n", answer)
        self.addCleanup(server.close)
        self.fails_with("tls", "", EMAIL_IMAP_PORT=str(server.port), EMAIL_IMAP_SECURITY="starttls")

    def test_no_starttls_means_no_password_in_clear(self):
        heard = []

        def answer(line):
            heard.append(line)
            return b"* CAPABILITY IMAP4rev1 AUTH=PLAIN\r\n" + line.split()[0] + b" OK done\r\n"
        server = Script(GREETING, answer)
        self.addCleanup(server.close)
        self.fails_with("tls", "does not offer STARTTLS", EMAIL_IMAP_PORT=str(server.port), EMAIL_IMAP_SECURITY="starttls")
        self.assertFalse([line for line in heard if b"AUTH" in line or b"LOGIN" in line])

    # -- hostile servers

    def hostile(self, reply):
        """Start against a false server; reply(tag, line) gives the answer to what follows the sign-in."""
        state = {}

        def answer(line):
            if state.pop("auth", None):
                return state["tag"] + b" OK [CAPABILITY IMAP4rev1 AUTH=PLAIN] in\r\n"
            tag, _, rest = line.partition(b" ")
            if rest.upper().startswith(b"AUTHENTICATE"):
                state.update(auth=True, tag=tag)
                return b"+ \r\n"
            if rest.upper().startswith(b"CAPABILITY"):
                return b"* CAPABILITY IMAP4rev1 AUTH=PLAIN\r\n" + tag + b" OK done\r\n"
            return reply(tag, rest)
        server = Script(GREETING, answer)
        self.addCleanup(server.close)
        return self.start(self.plain(server.port))

    def test_server_that_sends_too_much(self):
        client = self.hostile(lambda tag, rest: b"* LIST () \"/\" {99999999999}\r\n")
        self.fails(client, "list_folders", "are read at most")
        client = self.hostile(lambda tag, rest: [b"* " + b"x" * (1 << 20)] * 10)
        self.fails(client, "list_folders", "a line of more than")

    def test_server_that_hangs_up_or_babbles(self):
        self.fails(self.hostile(lambda tag, rest: None), "list_folders", "was dropped")
        self.fails(self.hostile(lambda tag, rest: b"* BYE \x1b]0;owned\x07 shutting down\r\n"), "list_folders", "was dropped")
        self.fails(self.hostile(lambda tag, rest: b"%%%%\r\n"), "list_folders", "was dropped")
        text = self.fails(self.hostile(lambda tag, rest: tag + b" NO \x1b[31mred\x07 text\r\n"), "list_folders", "red text")
        self.assertNotIn("\x1b", text)

    def test_server_that_repeats_the_password(self):
        client = self.hostile(lambda tag, rest: tag + b" NO bad password " + USERS[ADA].encode() + b"\r\n")
        self.assertSilent(self.fails(client, "list_folders", "[redacted]"), USERS[ADA])

    # -- dropped connections

    def test_dropped_connection_is_opened_again(self):
        proxy = Proxy(self.mail["imap"])
        self.addCleanup(proxy.close)
        client = self.start(self.plain(proxy.port))
        self.put(simple("one"))
        for _ in range(3):
            self.assertEqual(self.ok(client, "list_recent")["total"], 1)
            proxy.drop()
        self.assertEqual(proxy.accepted, 3)
        self.assertEqual(self.ok(client, "search_messages", subject="one")["total"], 1)

    def test_dropped_connection_in_a_change_is_not_repeated(self):
        proxy = Proxy(self.mail["imap"])
        self.addCleanup(proxy.close)
        client = self.start(self.plain(proxy.port))
        self.ok(client, "list_folders")
        proxy.drop()
        self.fails(client, "save_draft", "not known", subject="x")
        self.ok(client, "save_draft", subject="x")

    # -- new mail

    def next_event(self, client, seconds=25):
        try:
            return client.notifications.get(timeout=seconds)
        except queue.Empty:
            self.fail("no event; log:\n%s\n%s" % (client.log(), self.servers.logs()))

    def watching(self, env):
        client = self.start(env)
        self.wait_for(lambda: "watching for new mail" in client.log())
        return client

    def test_new_mail_is_announced_by_idle(self):
        self.put(simple("old"))
        client = self.watching(self.settings(EMAIL_PUSH="true"))
        self.assertIn("(IDLE)", client.log())
        sender = self.start(self.settings(EMAIL_USERNAME=BOB, EMAIL_PASSWORD=USERS[BOB], EMAIL_FROM=BOB))
        for n in range(3):
            sent = self.ok(sender, "send_email", to=[ADA], subject="push %d \u2603" % n, body="b")
            event = self.next_event(client)
            self.assertEqual(set(event), {"jsonrpc", "method", "params"})
            self.assertEqual(event["method"], "event/new_email")
            params = event["params"]
            self.assertEqual((params["subject"], params["from"], params["folder"], params["message_id"]),
                             ("push %d \u2603" % n, BOB, "INBOX", sent["message_id"]))
            self.assertIn("push %d" % n, self.ok(client, "get_message", uid=params["uid"])["subject"])  # both connections at once
        self.assertTrue(client.notifications.empty())
        self.assertEqual(client.close(), 0)

    def test_nothing_is_sent_before_the_handshake_is_done(self):
        from stdio_client import Client
        client = Client("email", "email_mcp_server.py", self.settings(EMAIL_PUSH="true"))
        self.addCleanup(self._end, client)
        client.request("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}})
        self.put(simple("early"))
        client.request("ping")
        self.assertTrue(client.notifications.empty())
        self.assertNotIn("watching", client.log())

    def test_new_mail_is_announced_by_polling(self):
        proxy = Proxy(self.mail["imap"], [(b" IDLE", b"")])
        self.addCleanup(proxy.close)
        client = self.watching(self.plain(proxy.port, EMAIL_PUSH="true", EMAIL_POLL_SECONDS="1"))
        self.assertIn("(every 1 s)", client.log())
        self.put(simple("polled"))
        self.assertEqual(self.next_event(client)["params"]["subject"], "polled")

    def test_mail_that_came_while_the_connection_was_down(self):
        proxy = Proxy(self.mail["imap"])
        self.addCleanup(proxy.close)
        client = self.watching(self.plain(proxy.port, EMAIL_PUSH="true"))
        self.put(simple("before"))
        self.assertEqual(self.next_event(client)["params"]["subject"], "before")
        proxy.drop()
        self.put(simple("meanwhile"))
        self.assertEqual(self.next_event(client)["params"]["subject"], "meanwhile")
        self.assertIn("next try in 1 s", client.log())

    def test_a_burst_is_announced_up_to_a_limit(self):
        client = self.watching(self.settings(EMAIL_PUSH="true"))
        with self.look() as imap:
            for n in range(30):
                imap.append("INBOX", None, None, simple("burst %d" % n).replace(b"\n", b"\r\n"))
        seen, until = [], time.monotonic() + 30
        while "burst 29" not in seen and time.monotonic() < until:
            seen.append(self.next_event(client)["params"]["subject"])
        self.assertEqual(len(seen), len(set(seen)))
        self.assertEqual(seen[-1], "burst 29")

    def test_a_refused_password_is_not_tried_again(self):
        client = self.start(self.settings(EMAIL_PUSH="true", EMAIL_PASSWORD="wrong-one"))
        self.wait_for(lambda: "until the connector is started again" in client.log())
        self.fails(client, "list_folders", "refused user name or password")
        self.assertSilent(client.log() + client.raw.decode(), "wrong-one")

    def test_push_ends_with_the_server(self):
        client = self.watching(self.settings(EMAIL_PUSH="true"))
        began = time.monotonic()
        self.assertEqual(client.close(), 0)
        self.assertLess(time.monotonic() - began, 10)
        client = self.watching(self.settings(EMAIL_PUSH="true"))
        client.process.terminate()
        self.assertEqual(client.process.wait(10), 0)

    def test_the_password_is_in_no_output(self):
        client = self.watching(self.settings(EMAIL_PUSH="true"))
        self.ok(client, "list_folders")
        self.put(simple("x", "the password is " + USERS[ADA].replace("\u00e8", "e")))
        uid = self.put(("Subject: leak\nContent-Type: text/plain; charset=utf-8\n\n%s\n" % USERS[ADA]).encode())
        self.assertIn("[redacted]", self.ok(client, "get_message", uid=uid)["text"])
        self.fails(client, "list_recent", "no folder", folder=USERS[ADA])
        client.close()
        self.assertSilent(client.raw.decode() + client.log(), USERS[ADA])


class Parts(unittest.TestCase):
    """Functions that need no server."""

    @classmethod
    def setUpClass(cls):
        sys.path.insert(0, os.path.join(ROOT, "email"))
        import email_compose
        import email_config
        import email_imap
        cls.imap, cls.config, cls.compose = email_imap, email_config, email_compose

    @classmethod
    def tearDownClass(cls):
        sys.path.pop(0)

    def test_folder_names(self):
        for name, coded in (("INBOX", "INBOX"), ("a & b", "a &- b"), ("~peter/mail/\u53f0\u5317/\u65e5\u672c\u8a9e", "~peter/mail/&U,BTFw-/&ZeVnLIqe-"),
                            ("\u00e8", "&AOg-"), ("\U0001f4e7", "&2D3c5w-"), ("&-", "&--"), ("", "")):
            self.assertEqual(self.imap.encode_folder(name), coded)
            self.assertEqual(self.imap.decode_folder(coded), name)
        for odd in ("&", "a&b", "&&&", "&@@-", "&A-", "&2D3-"):
            self.assertIsInstance(self.imap.decode_folder(odd), str)

    def test_answers(self):
        parse = self.imap.parse
        self.assertEqual(parse([(b"1 (UID 5 BODY[HEADER.FIELDS (FROM TO)] {3}", b"a)b"), b" FLAGS (\\Seen))"]),
                         [b"1", [b"UID", b"5", b"BODY[HEADER.FIELDS (FROM TO)]", b"a)b", b"FLAGS", [b"\\Seen"]]])
        self.assertEqual(parse([b'(("a\\"b" NIL "nil"))']), [[[b'a"b', None, b"nil"]]])
        for odd in (b"", b"(", b")", b'"', b"((((", b"))))", b'"\\', b"[", b"a]b[", None):
            self.assertIsInstance(parse([odd]), list)
        self.assertEqual(self.imap.fetch_items([b"1 (FLAGS (\\Seen))", b"2 (UID x)", b"3 (UID 7 FLAGS ())"]), {7: {"UID": b"7", "FLAGS": []}})

    def test_answers_of_any_bytes(self):
        import random
        chance = random.Random(1)
        for _ in range(3000):
            data = bytes(chance.choice(b'()"\\ {}[]1aNIL\r\n\xff') for _ in range(chance.randrange(40)))
            self.imap.fetch_items([data])
            self.imap.has_attachment(self.imap.parse([data]))

    def test_security_follows_the_port(self):
        base = {"EMAIL_IMAP_HOST": "a", "EMAIL_SMTP_HOST": "a", "EMAIL_USERNAME": "u", "EMAIL_PASSWORD": "p"}
        for imap, smtp, want in (("", "", ("ssl", "ssl")), ("993", "465", ("ssl", "ssl")), ("143", "587", ("starttls", "starttls")),
                                 ("1143", "25", ("ssl", "starttls"))):
            s = self.config.Settings(dict(base, EMAIL_IMAP_PORT=imap, EMAIL_SMTP_PORT=smtp))
            self.assertEqual((s.imap_security, s.smtp_security), want)
        self.assertEqual((self.config.Settings(base).imap_port, self.config.Settings(base).smtp_port), (993, 465))
        self.assertNotIn("'p'", repr(self.config.Settings(base)) + repr(vars))

    def test_names_of_this_machine(self):
        for host, own in (("localhost", True), ("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("127.0.0.1.evil.org", False),
                          ("localhost.evil.org", False), ("10.0.0.1", False), ("128.0.0.1", False)):
            self.assertEqual(self.config.is_loopback(host), own, host)

    def test_addresses(self):
        for text, want in (("a@b.c", "a@b.c"), ("A B <a@b.c>", "A B <a@b.c>"), ('"A, B" <a@b.c>', '"A, B" <a@b.c>'),
                           ("a@b\u00fccher.example", "a@xn--bcher-kva.example"), ("a+b@localhost", "a+b@localhost")):
            self.assertEqual(str(self.compose.address("to", text)), want)
        for text in ("", "a", "@b", "a@", "a b@c", "a@b c", "<a@b.c", "a@b.c>", "a@b@c", "a@b.c,d@e.f", "a@b\x00.c", "a@-\u2028.c", '"a"@b.c'):
            with self.assertRaises(self.compose.ToolError, msg=text):
                self.compose.address("to", text)


if __name__ == "__main__":
    unittest.main()
