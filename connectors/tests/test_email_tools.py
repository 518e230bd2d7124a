"""The tools of the email connector against real IMAP and SMTP servers."""

import email
import email.policy
import json
import os
import stat
import tempfile
import unittest

from mailbox_helpers import ADA, BOB, MailTest, Proxy
from stdio_client import ProtocolTests

NOTE = """From: =?utf-8?q?Bob_B=C3=BCrger?= <bob@example.test>
To: Ada <ada@example.test>, Carl <carl@example.org>
Cc: dora@example.org
Subject: =?utf-8?b?Q2FmZsOpIOKYgw==?= plans
Date: Thu, 01 Jan 2026 10:00:00 +0000
Message-ID: <note-1@example.test>
References: <root@example.test>
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary=b

--b
Content-Type: text/plain; charset=utf-8
Content-Transfer-Encoding: 8bit

Let us meet, Ada. \u00e8
--b
Content-Type: application/pdf
Content-Disposition: attachment; filename="../../etc/pass\\"wd.pdf"
Content-Transfer-Encoding: base64

UERGIGRhdGE=
--b--
""".encode("utf-8")


def simple(subject, body="text", sender="x@example.org", extra=""):
    return ("From: %s\nTo: ada@example.test\nSubject: %s\nDate: Thu, 01 Jan 2026 10:00:00 +0000\n"
            "Message-ID: <%s@example.test>\n%s\n%s\n" % (sender, subject, abs(hash(subject)), extra, body)).encode()


class Tools(ProtocolTests, MailTest):
    def messages(self, client, folder="INBOX"):
        return self.ok(client, "list_recent", folder=folder)["messages"]

    # -- folders

    def test_folders(self):
        client = self.start()
        uses = {f["name"]: f["flags"] for f in self.ok(client, "list_folders")["folders"]}
        self.assertIn("sent", uses["Sent"])
        self.assertIn("trash", uses["Trash"])
        for name in ("Caff\u00e8 & latte/\u65e5\u672c\u8a9e", 'quo"te\\back', "&", "emoji \U0001f4e7", "a b", "x~"):
            self.assertEqual(self.ok(client, "create_folder", folder=name), {"created": name})
            self.put(simple("in it"), self.encoded(name))
            self.assertEqual([m["subject"] for m in self.messages(client, name)], ["in it"])
        counted = {f["name"]: f for f in self.ok(client, "list_folders", counts=True)["folders"]}
        self.assertEqual((counted["&"]["messages"], counted["&"]["unread"]), (1, 1))
        self.assertIn('quo"te\\back', counted)
        self.assertIn("emoji \U0001f4e7", counted)
        self.fails(client, "create_folder", "refused", folder="&")
        self.fails(client, "create_folder", "control characters", folder="a\r\nb LOGOUT")
        self.fails(client, "list_recent", 'there is no folder "Nowhere"', folder="Nowhere")

    @staticmethod
    def encoded(name):
        out, run = "", ""
        for c in name + "\0":
            if run and c < "\x7f":
                import base64
                out += "&" + base64.b64encode(run.encode("utf-16-be")).decode().rstrip("=").replace("/", ",") + "-"
                run = ""
            if c >= "\x7f":
                run += c
            elif c != "\0":
                out += "&-" if c == "&" else c
        return '"%s"' % out.replace("\\", "\\\\").replace('"', '\\"')

    # -- finding

    def test_list_recent(self):
        client = self.start()
        self.assertEqual(self.ok(client, "list_recent"), {"messages": [], "total": 0})
        uids = [self.put(simple("number %d" % n), flags="(\\Seen)" if n % 2 else None) for n in range(7)]
        found = self.ok(client, "list_recent", limit=3)
        self.assertEqual(([m["uid"] for m in found["messages"]], found["total"]), (uids[:3:-1], 7))
        found = self.ok(client, "list_recent", limit=2, before_uid=uids[4])
        self.assertEqual([m["uid"] for m in found["messages"]], [uids[3], uids[2]])
        found = self.ok(client, "list_recent", unread_only=True)
        self.assertEqual([m["uid"] for m in found["messages"]], uids[6::-2])
        self.fails(client, "list_recent", "limit must be at most 100", limit=101)

    def test_search(self):
        client = self.start()
        note = self.put(NOTE)
        other = self.put(simple('say "hello {5}" \\o/', "nothing"), flags="(\\Seen \\Flagged)")
        for want, query in (
                ([note], {"subject": "Caff\u00e9 \u2603"}), ([note], {"subject": "caff\u00c9"}), ([note], {"from_": "B\u00fcrger"}),
                ([note], {"text": "meet, Ada"}), ([note], {"body": "\u00e8", "subject": "\u2603", "to": "carl"}),
                ([other], {"subject": '"hello {5}" \\o'}), ([other], {"subject": '"hello {5}"', "body": "nothing", "from_": "x@"}),
                ([], {"subject": "{7}\u00e9", "text": "x"}), ([note], {"unread": True}), ([other], {"unread": False}),
                ([other], {"flagged": True}), ([note], {"flagged": False}), ([other, note], {"since": "2020-01-31"}),
                ([], {"before": "2020-01-31"}), ([other, note], {}), ([note], {"before_uid": other}),
                ([], {"text": "zzz NOT OR (ALL)"})):
            found = self.ok(client, "search_messages", **query)
            self.assertEqual([m["uid"] for m in found["messages"]], want, query)
        self.assertTrue(self.ok(client, "search_messages", subject="\u2603")["messages"][0]["attachments"])
        self.fails(client, "search_messages", "line break", subject="a\r\nX LOGOUT")
        self.fails(client, "search_messages", "line break", subject="\u00e8\nX LOGOUT")
        self.fails(client, "search_messages", "since must match", since="yesterday")
        self.fails(client, "search_messages", "not a day of the calendar", since="2026-02-30")
        self.fails(client, "search_messages", "before_uid", before_uid=1)

    # -- reading

    def test_get_message(self):
        client = self.start()
        uid = self.put(NOTE)
        got = self.ok(client, "get_message", uid=uid)
        self.assertEqual((got["subject"], got["from"], got["cc"]),
                         ("Caff\u00e9 \u2603 plans", "Bob B\u00fcrger <bob@example.test>", "dora@example.org"))
        self.assertEqual(got["text"].strip(), "Let us meet, Ada. \u00e8")
        self.assertEqual(got["attachments"], [{"index": 0, "filename": '../../etc/pass"wd.pdf', "type": "application/pdf", "size": 8}])
        self.assertTrue(got["unread"])
        self.assertTrue(self.messages(client)[0]["unread"], "reading must not mark")
        self.ok(client, "get_message", uid=uid, mark_read=True)
        self.assertFalse(self.messages(client)[0]["unread"])
        self.fails(client, "get_message", "there is no message with UID 999", uid=999)

    def test_html_and_long_text(self):
        client = self.start()
        uid = self.put(simple("h", "<style>x{}</style><p>Hi <a href='https://e.org/'>there</a></p><script>1</script><li>one",
                              extra="MIME-Version: 1.0\nContent-Type: text/html; charset=utf-8\n"))
        self.assertEqual(self.ok(client, "get_message", uid=uid)["text"], "Hi there (https://e.org/)\n\n- one")
        self.assertIn("<script>", self.ok(client, "get_message", uid=uid, format="html")["text"])
        uid = self.put(simple("l", "0123456789\n" * 40000))
        got = self.ok(client, "get_message", uid=uid, start=11, max_chars=100)
        self.assertEqual((got["text"][:10], got["text_range"]["end"]), ("0123456789", 111))
        got = self.ok(client, "get_message", uid=uid, max_chars=200000)
        self.assertEqual(len(got["text"]), 200000)

    def test_broken_messages_are_readable(self):
        client = self.start()
        for n, raw in enumerate((
                b"no header at all\n", b"\n\n", b"Subject: =?nonsense?q?=FF=?=\nFrom: =?utf-8?b?!!!?=\n\nx\n",
                b"Subject: raw \xe8\xff\nFrom: <>\n\n\xe8\n", b"Content-Type: text/plain; charset=martian\nSubject: c\n\n\xe8 y\n",
                b"Content-Type: multipart/mixed\nSubject: no boundary\n\nparts?\n",
                b"Content-Type: text/plain\nContent-Transfer-Encoding: base64\nSubject: b\n\n@@@@=not\n",
                b"Content-Type: multipart/mixed; boundary=x\n\n" + b"--x\nContent-Type: multipart/mixed; boundary=x\n\n" * 50,
                b"Content-Disposition: attachment; filename*=utf-8''%FF%00evil\nSubject: f\n\ndata\n",
                b"From: " + b"a@b.c, " * 3000 + b"\nSubject: " + b"s" * 5000 + b"\n\nmany\n")):
            uid = self.put(raw)
            got = self.ok(client, "get_message", uid=uid)
            self.assertIn("text", got, n)
            self.assertLess(len(json.dumps(got)), 20000, n)
        self.assertEqual(len(self.messages(client)), 10)

    # -- attachments

    def files(self, **changes):
        folder = tempfile.mkdtemp()
        self.addCleanup(__import__("shutil").rmtree, folder)
        return folder, self.start(self.settings(EMAIL_ATTACHMENTS_DIR=folder, **changes))

    def test_save_attachment(self):
        folder, client = self.files()
        uid = self.put(NOTE)
        self.assertEqual(self.ok(client, "save_attachment", uid=uid, index=0), {"saved": "_.._etc_pass_wd.pdf", "size": 8})
        self.assertEqual(self.ok(client, "save_attachment", uid=uid, index=0)["saved"], "_.._etc_pass_wd (2).pdf")
        for name, saved in (("CON", "_CON"), ("a/b\\c:d", "a_b_c_d"), ("...", "attachment-0"), ("x\r\ny.txt", "x__y.txt"),
                            ("n" * 300 + ".pdf", "n" * 100 + ".pdf"), (".hidden", "hidden")):
            self.assertEqual(self.ok(client, "save_attachment", uid=uid, index=0, filename=name)["saved"], saved)
        for name in os.listdir(folder):
            with open(os.path.join(folder, name), "rb") as f:
                self.assertEqual(f.read(), b"PDF data")
            self.assertEqual(stat.S_IMODE(os.stat(os.path.join(folder, name)).st_mode), 0o600)
        os.symlink("/tmp/skald-target", os.path.join(folder, "link"))
        self.assertEqual(self.ok(client, "save_attachment", uid=uid, index=0, filename="link")["saved"], "link (2)")
        self.assertFalse(os.path.exists("/tmp/skald-target"))
        self.fails(client, "save_attachment", "has 1 attachments", uid=uid, index=1)
        self.fails(client, "save_attachment", "no message with UID", uid=777, index=0)
        self.fails(self.start(), "save_attachment", "EMAIL_ATTACHMENTS_DIR", uid=uid, index=0)
        self.fails(self.start(self.settings(EMAIL_ATTACHMENTS_DIR="/no/such")), "save_attachment", "does not exist", uid=uid, index=0)

    def test_send_with_attachments(self):
        folder, client = self.files()
        with open(os.path.join(folder, "caff\u00e8.txt"), "wb") as f:
            f.write(b"beans\n" * 1000)
        with open(os.path.join(folder, "secret.eml"), "wb") as f:
            f.write(b"From: x\n\nx")
        self.ok(client, "send_email", to=[BOB], subject="files", body="see", attachments=["caff\u00e8.txt", "secret.eml"])
        message = self.arrived(BOB)
        parts = {p.get_filename(): p.get_payload(decode=True) for p in message.iter_attachments()}
        self.assertEqual(parts["caff\u00e8.txt"], b"beans\n" * 1000)
        self.assertEqual(parts["secret.eml"], b"From: x\n\nx")
        os.symlink("/etc/hostname", os.path.join(folder, "link"))
        os.mkfifo(os.path.join(folder, "pipe"))
        os.mkdir(os.path.join(folder, "sub"))
        with open(os.path.join(folder, "large"), "wb") as f:
            f.truncate(21 << 20)
        for name, words in (("../x", "not inside"), ("/etc/passwd", "not inside"), ("link", "not inside"), ("sub", "cannot be|is not a file"),
                            ("pipe", "is not a file"), ("none", "No such file"), ("large", "larger than 20 MiB"), (".", "not inside"),
                            ("a\nb", "line breaks")):
            text, failed = client.call("send_email", to=[BOB], subject="s", body="b", attachments=[name])
            self.assertTrue(failed)
            self.assertRegex(text, words)
        self.fails(self.start(), "send_email", "no attachments folder", to=[BOB], subject="s", body="b", attachments=["x"])

    def arrived(self, user, count=1):
        """Wait for the newest message of a user's inbox; return it parsed."""
        def newest():
            with self.look(user) as imap:
                total = int(imap.select("INBOX", readonly=True)[1][0])
                return imap.fetch(str(total), "(BODY.PEEK[])")[1][0][1] if total >= count else None
        return email.message_from_bytes(self.wait_for(newest), policy=email.policy.default)

    # -- writing

    def test_send(self):
        client = self.start()
        sent = self.ok(client, "send_email", to=["Bob B\u00fcrger <bob@example.test>"], cc=[ADA], bcc=[ADA], subject="Gr\u00fc\u00dfe \u2603 " + "w" * 200,
                       body="line\n.\nFrom here\n\u00e8", html="<p>\u00e8</p>")
        self.assertEqual(sent["recipients"], [BOB, ADA])
        message = self.arrived(BOB)
        self.assertEqual(message["subject"], "Gr\u00fc\u00dfe \u2603 " + "w" * 200)
        self.assertEqual(message["from"], "Ada Lovelace <ada@example.test>")
        self.assertEqual(message["message-id"].strip(), sent["message_id"])
        self.assertNotIn("bcc", {k.lower() for k in message.keys()})
        self.assertEqual(message.get_body(("plain",)).get_content().replace("\r\n", "\n"), "line\n.\nFrom here\n\u00e8\n")
        self.assertEqual(message.get_body(("html",)).get_content().strip(), "<p>\u00e8</p>")
        copy = self.messages(client, "Sent")
        self.assertEqual([(m["subject"], m["unread"]) for m in copy], [("Gr\u00fc\u00dfe \u2603 " + "w" * 200, False)])
        quiet = self.start(self.settings(EMAIL_SAVE_SENT="false"))
        self.ok(quiet, "send_email", to=[BOB], subject="no copy", body="")
        self.assertEqual(len(self.messages(client, "Sent")), 1)

    def test_send_is_refused(self):
        client = self.start()
        for arguments, words in (
                ({"to": ["nobody@example.test"]}, "refused every recipient: nobody@example.test (550"),
                ({"to": ["x@elsewhere.example"]}, "no such user here"), ({"to": []}, "has no recipient"),
                ({"to": ["a@b.c\r\nBcc: evil@x.y"]}, "line breaks"), ({"subject": "x\nBcc: evil@x.y"}, "line breaks"),
                ({"subject": "x\u2028y"}, "line breaks"), ({"to": ["not an address"]}, "is not an email address"),
                ({"to": ["a@b, c@d"]}, "is not an email address"), ({"to": ["<a@b>c"]}, "is not an email address"),
                ({"cc": ["\u00e8@example.org"]}, "is not an email address"), ({"to": "bob@example.test"}, "to must be an array"),
                ({"bcc": ["Evil\r\n <a@b.c>"]}, "line breaks"), ({"body": 5}, "body must be a string"),
                ({"to": ["x@y.z"] * 101}, "at most 100 items"), ({"body": "b" * 1000001}, "longer than 1000000")):
            self.fails(client, "send_email", words, **dict({"to": [BOB], "subject": "s", "body": "b"}, **arguments))
        mixed = self.ok(client, "send_email", to=[BOB, "nobody@example.test"], subject="half", body="b")
        self.assertEqual(mixed["recipients"], [BOB])
        self.assertIn("nobody@example.test (550", mixed["refused"])

    def test_send_survives_a_missing_sent_folder(self):
        proxy = Proxy(self.mail["imap"], [(b"\\Sent", b"\\Xxxx"), (b" Sent", b" Zent"), (b'"Sent"', b'"Zent"')])
        self.addCleanup(proxy.close)
        sent = self.ok(self.start(self.plain(proxy.port)), "send_email", to=[BOB], subject="s", body="b")
        self.assertIn("no copy could be put into the sent folder", sent["notes"][0])

    def test_reply(self):
        client = self.start()
        uid = self.put(NOTE.replace(b"carl@example.org", b"bob@example.test").replace(b"dora@example.org", b"ada@example.test"))
        sent = self.ok(client, "reply", uid=uid, body="Yes.", reply_all=True)
        self.assertEqual(sent["recipients"], [BOB])
        message = self.arrived(BOB)
        self.assertEqual(message["subject"], "Re: Caff\u00e9 \u2603 plans")
        self.assertEqual(message["in-reply-to"], "<note-1@example.test>")
        self.assertEqual(message["references"], "<root@example.test> <note-1@example.test>")
        self.assertIn("> Let us meet, Ada. \u00e8", message.get_body().get_content())
        self.assertTrue(self.messages(client)[0]["answered"])
        self.ok(client, "reply", uid=uid, body="Again.", quote=False)
        self.assertEqual(self.arrived(BOB, 2).get_body().get_content().strip(), "Again.")
        hostile = self.put(b"From: bob@example.test\nSubject: =?utf-8?q?a=0D=0ABcc=3A_x=40y.z?=\nMessage-ID: <a@b>\n  evil\n\nx\n")
        self.ok(client, "reply", uid=hostile, body="ok")
        self.assertEqual(self.arrived(BOB, 3)["subject"], "Re: a Bcc: x@y.z")
        self.fails(client, "reply", "nobody to reply to", uid=self.put(b"Subject: x\n\nx\n"), body="b")
        self.fails(client, "reply", "no message with UID", uid=9999, body="b")

    def test_draft(self):
        client = self.start()
        saved = self.ok(client, "save_draft", to=[BOB], bcc=["carl@example.org"], subject="later", body="draft")
        self.assertEqual(saved["saved_in"], "Drafts")
        got = self.messages(client, "Drafts")
        self.assertEqual([m["subject"] for m in got], ["later"])
        self.ok(client, "save_draft")
        self.fails(client, "save_draft", "is not an email address", to=["nobody"])
        with self.look(BOB) as imap:
            self.assertEqual(imap.select("INBOX")[1][0], b"0")

    # -- filing

    def test_mark(self):
        client = self.start()
        uids = [self.put(simple("m%d" % n)) for n in range(3)]
        for mark, key, value in (("read", "unread", False), ("unread", "unread", True), ("flagged", "flagged", True), ("unflagged", "flagged", False)):
            self.ok(client, "mark_message", uids=uids[:2], mark=mark)
            shown = {m["uid"]: m[key] for m in self.messages(client)}
            self.assertEqual([shown[u] for u in uids[:2]], [value] * 2, mark)
        self.fails(client, "mark_message", "not in this folder: UID 555; nothing was changed", uids=[uids[0], 555], mark="read")
        self.fails(client, "mark_message", "mark must be one of", uids=uids, mark="gone")
        self.fails(client, "mark_message", "uids must not be empty", uids=[], mark="read")
        self.fails(client, "mark_message", "uids[0] must be an integer", uids=["1:*"], mark="read")

    def check_filing(self, client):
        uids = [self.put(simple("m%d" % n)) for n in range(4)]
        self.ok(client, "create_folder", folder="Archiv \u00fc")
        self.ok(client, "move_message", uids=uids[:2], destination="Archiv \u00fc")
        self.assertEqual(len(self.messages(client, "Archiv \u00fc")), 2)
        self.fails(client, "move_message", "not in this folder", uids=uids[:1], destination="Archiv \u00fc")
        self.fails(client, "move_message", "refused", uids=uids[2:], destination="Nowhere")
        self.fails(client, "move_message", "already", uids=uids[2:], destination="INBOX")
        self.assertEqual(self.ok(client, "delete_message", uids=uids[2:3])["moved_to"], "Trash")
        self.assertEqual([m["uid"] for m in self.messages(client)], [uids[3]])
        trashed = self.messages(client, "Trash")
        self.assertEqual([m["subject"] for m in trashed], ["m2"])
        self.fails(client, "delete_message", "in the trash already", folder="Trash", uids=[trashed[0]["uid"]])
        self.fails(client, "delete_message", "not in this folder", uids=[4242])

    def test_move_and_delete(self):
        self.check_filing(self.start())

    def test_move_on_a_server_without_move(self):
        proxy = Proxy(self.mail["imap"], [(b" MOVE", b"")])
        self.addCleanup(proxy.close)
        self.check_filing(self.start(self.plain(proxy.port)))

    def test_delete_on_a_server_that_cannot_expunge_single_messages(self):
        proxy = Proxy(self.mail["imap"], [(b" MOVE", b""), (b" UIDPLUS", b"")])
        self.addCleanup(proxy.close)
        client = self.start(self.plain(proxy.port))
        other, uid = self.put(simple("other"), flags="(\\Deleted)"), self.put(simple("gone"))
        self.assertIn("the originals stay", self.ok(client, "delete_message", uids=[uid])["note"])
        self.assertEqual([m["uid"] for m in self.messages(client)], [uid, other])


if __name__ == "__main__":
    unittest.main()
