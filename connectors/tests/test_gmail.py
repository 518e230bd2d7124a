"""The gmail connector against the double of the Gmail API."""

import base64
import email
import email.policy
import json
import os
import unittest

from google_double import CLOUD, EMAIL, outage
from google_double_gmail import Gmail
from google_helpers import ErrorTests, FolderTests, GoogleTest, SignInTests, SingleFlightTests
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


def simple(subject, body="text", sender="x@example.org", extra="", kind="text/plain; charset=utf-8"):
    return ("From: %s\nTo: ada@example.test\nSubject: %s\nDate: Thu, 01 Jan 2026 10:00:00 +0000\n"
            "Message-ID: <%s@example.test>\nContent-Type: %s\nContent-Transfer-Encoding: 8bit\n%s\n%s\n"
            % (sender, subject, subject.replace(" ", "-"), kind, extra, body)).encode()


class GmailTests(ProtocolTests, SignInTests, ErrorTests, FolderTests, SingleFlightTests, GoogleTest):
    connector, script, variable, service = "gmail", "gmail_mcp_server.py", "GMAIL", Gmail
    probe, pattern, path = "get_profile", "GET /gmail/v1/users/me/profile", "/gmail/v1/users/me/profile"
    narrow = [CLOUD + "gmail.readonly"]
    DATA = b"PDF data"

    def send(self, client, name):
        return client.call("send_email", to=["bob@example.test"], subject="file", body="see", attachments=[name])

    def receive(self, client, name):
        ident = next((i for i, m in self.api.messages.items() if m["data"] == NOTE), None) or self.api.add(NOTE)
        return client.call("save_attachment", id=ident, index=0, filename=name)

    def stored(self, ident):
        return email.message_from_bytes(self.api.messages[ident]["data"], policy=email.policy.default)

    # -- account and labels

    def test_profile_and_labels(self):
        client = self.start()
        self.api.add(NOTE)
        self.assertEqual(self.ok(client, "get_profile"), {"email": EMAIL, "messages": 1, "threads": 1})
        made = self.ok(client, "create_label", name="Caff\u00e8/Latte")
        self.assertEqual(made["name"], "Caff\u00e8/Latte")
        self.fails(client, "create_label", "409: Label name exists or conflicts", name="caff\u00c8/latte")
        self.fails(client, "create_label", "line breaks", name="a\nb")
        labels = {x["name"]: x for x in self.ok(client, "list_labels", counts=True)["labels"]}
        self.assertEqual((labels["INBOX"]["messages"], labels["INBOX"]["unread"], labels["INBOX"]["type"]), (1, 1, "system"))
        self.assertEqual(self.ok(client, "update_label", label="caff\u00e8/latte", name="Tea")["id"], made["id"])
        self.fails(client, "delete_label", 'there is no label "Coffee"', label="Coffee")
        self.fails(client, "delete_label", "Invalid delete request", label="INBOX")
        self.assertEqual(self.ok(client, "delete_label", label="Tea"), {"deleted": made["id"]})

    # -- finding

    def test_list_messages(self):
        client = self.start()
        self.assertEqual(self.ok(client, "list_messages"), {"messages": [], "about": 0})
        idents = [self.api.add(simple("number %d" % n), ["INBOX"] + ["UNREAD"] * (n % 2)) for n in range(7)]
        self.api.add(simple("archived"), [])
        found = self.ok(client, "list_messages", limit=3)
        self.assertEqual([m["id"] for m in found["messages"]], idents[:3:-1])
        self.assertEqual(found["messages"][0]["snippet"], "<snippet> it's")
        more = self.ok(client, "list_messages", limit=3, page=found["next_page"])
        last = self.ok(client, "list_messages", limit=3, page=more["next_page"])
        self.assertEqual([m["id"] for m in more["messages"] + last["messages"]], idents[3::-1])
        self.assertNotIn("next_page", last)
        found = self.ok(client, "list_messages", unread_only=True)["messages"]
        self.assertEqual([(m["id"], m["unread"]) for m in found], [(i, True) for i in idents[5::-2]])
        self.fails(client, "list_messages", "limit must be at most 50", limit=51)
        self.fails(client, "list_messages", 'there is no label "Nope"', label="Nope")
        self.fails(client, "list_messages", "Invalid pageToken", page="nonsense")

    def test_search(self):
        client = self.start()
        note = self.api.add(NOTE)
        spam = self.api.add(simple("win", sender="s@example.org"), ["SPAM"])
        found = self.ok(client, "search_messages", query="from:B\u00fcrger Caff\u00e9".split()[0])["messages"]
        self.assertEqual([(m["id"], m["from"], m["subject"]) for m in found],
                         [(note, "Bob B\u00fcrger <bob@example.test>", "Caff\u00e9 \u2603 plans")])
        self.assertEqual(self.ok(client, "search_messages", query="subject:win")["messages"], [])
        found = self.ok(client, "search_messages", query="subject:win", include_spam_trash=True)["messages"]
        self.assertEqual([m["id"] for m in found], [spam])

    def test_a_message_that_goes_meanwhile_is_left_out(self):
        client = self.start()
        idents = [self.api.add(simple("n%d" % n)) for n in range(3)]
        self.double.fail("GET .*/messages/%s$" % idents[1], _gone())
        self.assertEqual([m["id"] for m in self.ok(client, "list_messages")["messages"]], [idents[2], idents[0]])

    # -- reading

    def test_get_message(self):
        client = self.start()
        ident = self.api.add(NOTE)
        got = self.ok(client, "get_message", id=ident)
        self.assertEqual((got["from"], got["subject"], got["text"].strip()),
                         ("Bob B\u00fcrger <bob@example.test>", "Caff\u00e9 \u2603 plans", "Let us meet, Ada. \u00e8"))
        self.assertEqual(got["attachments"], [{"index": 0, "filename": '../../etc/pass"wd.pdf', "type": "application/pdf", "size": 8}])
        self.assertIn("UNREAD", got["labels"])
        self.assertNotIn("UNREAD", self.ok(client, "get_message", id=ident, mark_read=True)["labels"])
        self.assertEqual(self.api.messages[ident]["labels"], ["INBOX"])
        self.fails(client, "get_message", "404: Requested entity was not found.", id="18c0")
        for hostile in ("../../x", "a?b", "a/b", "", "a\n"):
            self.fails(client, "get_message", "id must", id=hostile)

    def test_texts(self):
        client = self.start()
        html = self.api.add(simple("h", "<head><title>no</title></head><p>One &amp; <b>two</b></p><script>no()</script>"
                                   '<a href="https://example.org/x">three</a>', kind="text/html; charset=utf-8"))
        got = self.ok(client, "get_message", id=html)
        self.assertEqual(got["text"], "One & two\n\nthree (https://example.org/x)".replace("\n\n", "\n"))
        self.assertIn("<script>", self.ok(client, "get_message", id=html, format="html")["text"])
        for charset, text in (("iso-8859-1", "caff\u00e8"), ("iso-2022-jp", "\u65e5\u672c"), ("nonsense", "caff\u00e8"), ("utf-16", "x\u00e8")):
            data = simple("c", kind="text/plain; charset=" + charset).replace(
                b"text\n", text.encode("latin-1" if charset == "nonsense" else charset))
            self.assertEqual(self.ok(client, "get_message", id=self.api.add(data))["text"].strip().strip("\ufffd"), text)
        long = self.api.add(simple("long", "0123456789" * 20000))  # comes as an attachmentId
        got = self.ok(client, "get_message", id=long, start=100000, max_chars=100)
        self.assertEqual((got["text"], got["text_range"]), ("0123456789" * 10, {"start": 100000, "end": 100100, "of": 200001}))

    def test_get_thread(self):
        client = self.start()
        first = self.api.add(simple("one", "x" * 9000))
        for n in range(3):
            self.api.add(simple("Re %d" % n), thread=first)
        got = self.ok(client, "get_thread", id=first, last=3)
        self.assertEqual(([m["subject"] for m in got["messages"]], got["earlier"]), (["Re 0", "Re 1", "Re 2"], 1))
        self.assertEqual(len(self.ok(client, "get_thread", id=first)["messages"][0]["text"]), 4000)

    def test_attachment_of_25_mib(self):
        data = os.urandom(1 << 20) * 25
        message = email.message.EmailMessage()
        message["From"], message["To"] = "x@example.org", EMAIL
        message.set_content("big")
        message.add_attachment(data, maintype="application", subtype="zip", filename="big.zip")
        client, ident = self.start(), self.api.add(message.as_bytes())
        self.assertEqual(self.ok(client, "save_attachment", id=ident, index=0), {"saved": "big.zip", "size": len(data)})
        self.assertTrue(self.read("big.zip") == data)
        self.fails(client, "save_attachment", "1 attachments, numbered from 0", id=ident, index=1)

    # -- filing

    def test_modify_and_trash(self):
        client = self.start()
        idents = [self.api.add(simple("n%d" % n)) for n in range(2)]
        self.ok(client, "create_label", name="Work")
        out = self.ok(client, "modify_messages", ids=idents, add=["work", "STARRED"], remove=["unread", "INBOX"])
        self.assertEqual(out["removed"], ["UNREAD", "INBOX"])
        self.assertEqual([m["labels"] for m in self.api.messages.values()], [out["added"]] * 2)
        self.fails(client, "modify_messages", "give labels", ids=idents)
        self.fails(client, "modify_messages", 'no label "Nope"', ids=idents, add=["Nope"])
        self.assertEqual(self.ok(client, "trash_messages", ids=idents), {"trashed": idents})
        self.assertIn("TRASH", self.api.messages[idents[0]]["labels"])
        self.assertEqual(self.ok(client, "untrash_messages", ids=idents[:1]), {"restored": idents[:1]})
        self.fails(client, "trash_messages", "18c0: the Gmail API answered 404: Requested entity was not found.; trashed before: " + idents[0],
                   ids=[idents[0], "18c0"])

    # -- writing

    def test_send(self):
        client = self.start()
        self.write(os.path.join(self.files, "r\u00e9sum\u00e9.pdf"), b"PDF")
        out = self.ok(client, "send_email", to=["B\u00f6b <bob@example.test>", "zoe@\u00e8xample.test"], cc=["c@example.test"],
                      bcc=["d@example.test"], subject="Caff\u00e8 \u2603 " + "long " * 40, body="H\u00e9llo", html="<b>H\u00e9llo</b>",
                      attachments=["r\u00e9sum\u00e9.pdf"])
        message = self.stored(out["id"])
        self.assertEqual((message["To"], message["Bcc"]), ("B\u00f6b <bob@example.test>, zoe@xn--xample-2ua.test", "d@example.test"))
        self.assertEqual(message["Subject"].strip(), "Caff\u00e8 \u2603 " + ("long " * 40).strip())
        self.assertEqual(message.get_body(("plain",)).get_content().strip(), "H\u00e9llo")
        self.assertEqual([(a.get_filename(), a.get_content()) for a in message.iter_attachments()], [("r\u00e9sum\u00e9.pdf", b"PDF")])
        self.assertIsNone(message["From"])
        self.ok(client, "send_email", to=["bob@example.test"], subject="", body="", sender="Work <work@example.test>")
        raw = self.api.messages[out["id"]]["data"]
        self.assertTrue(all(c < 128 for c in raw))

    def test_header_injection_is_refused(self):
        client = self.start()
        for field in ({"subject": "x\r\nBcc: evil@example.org"}, {"subject": "x\nBcc: e@x"}, {"subject": "x\u2028Bcc: e@x"},
                      {"to": ["a@example.org\r\nBcc: evil@example.org"]}, {"to": ["a\n <a@example.org>"]}, {"cc": ["x\x00@example.org"]},
                      {"to": ["a@example.org, b@example.org"]}, {"to": ["a@example.org\n"]}, {"bcc": ["nobody"]},
                      {"sender": "x@example.org\r\nX: y"}):
            text = self.fails(client, "send_email", "", **dict({"to": ["a@example.org"], "subject": "s", "body": "b"}, **field))
            self.assertRegex(text, "line breaks|not an email address")
        self.fails(client, "send_email", "no recipient", to=[], subject="s", body="b")
        self.assertFalse(self.api.messages)

    def test_send_25_mib_by_resumable_upload(self):
        client = self.start()
        data = os.urandom(25 << 20)
        self.write(os.path.join(self.files, "big.bin"), data)
        self.double.fail("PUT /upload/", None, outage(), "drop")
        out = self.ok(client, "send_email", to=["bob@example.test"], subject="big", body="see", attachments=["big.bin"])
        self.assertTrue(next(self.stored(out["id"]).iter_attachments()).get_content() == data)
        self.assertEqual(len(self.api.messages), 1)
        start = self.double.asked("POST /upload/gmail/v1/users/me/messages/send")
        self.assertEqual([r[2]["X-Upload-Content-Type"] for r in start], ["message/rfc822"])
        self.write(os.path.join(self.files, "bigger.bin"), data + b"x")
        self.fails(client, "send_email", "larger than 25 MiB", to=["b@example.test"], subject="s", body="b", attachments=["bigger.bin"])

    def test_an_upload_whose_last_answer_is_lost_is_not_sent_twice(self):
        client = self.start()
        self.write(os.path.join(self.files, "big.bin"), os.urandom(5 << 20))
        self.double.fail("PUT /upload/", "late")
        self.ok(client, "send_email", to=["bob@example.test"], subject="big", body="see", attachments=["big.bin"])
        self.assertEqual(len(self.api.messages), 1)

    def test_sending_is_not_tried_twice(self):
        client = self.start()
        for way in (outage(), "drop", "late"):
            before = len(self.double.asked("messages/send"))
            self.double.fail("POST .*/messages/send", way)
            self.fails(client, "send_email", "whether it was done is not known", to=["b@example.test"], subject="s", body="b")
            self.assertEqual(len(self.double.asked("messages/send")), before + 1)

    def test_reply(self):
        client = self.start()
        ident = self.api.add(NOTE)
        out = self.ok(client, "reply", id=ident, body="Yes!", reply_all=True)
        self.assertEqual(out["thread"], ident)
        message = self.stored(out["id"])
        self.assertEqual((message["To"], message["Cc"]), ("Bob B\u00fcrger <bob@example.test>", "Carl <carl@example.org>, dora@example.org"))
        self.assertEqual((message["Subject"], message["In-Reply-To"], message["References"]),
                         ("Re: Caff\u00e9 \u2603 plans", "<note-1@example.test>", "<root@example.test> <note-1@example.test>"))
        self.assertIn("> Let us meet, Ada. \u00e8", message.get_content())
        out = self.ok(client, "reply", id=ident, body="Later", quote=False, draft=True)
        self.assertEqual(self.stored(out["message"]).get_content().strip(), "Later")
        self.assertEqual(out["thread"], ident)
        hostile = self.api.add(simple("x", sender="Evil <evil@example.org>", extra="Reply-To: =?utf-8?q?a=0D=0ABcc:_b@example.org?= <c@example.org>\n"))
        message = self.stored(self.ok(client, "reply", id=hostile, body="b")["id"])
        self.assertIsNone(message["Bcc"])

    def test_drafts(self):
        client = self.start()
        made = self.ok(client, "create_draft", subject="Plan", body="one", bcc=["b@example.test"])
        self.assertEqual(self.ok(client, "list_drafts")["drafts"][0]["subject"], "Plan")
        self.ok(client, "update_draft", id=made["draft"], to=["bob@example.test"], subject="Plan 2", body="two")
        drafts = self.ok(client, "list_drafts")["drafts"]
        self.assertEqual([(d["id"], d["to"], d["subject"]) for d in drafts], [(made["draft"], "bob@example.test", "Plan 2")])
        sent = self.ok(client, "send_draft", id=made["draft"])
        self.assertEqual(self.api.messages[sent["id"]]["labels"], ["SENT"])
        other = self.ok(client, "create_draft", body="x")["draft"]
        self.assertEqual(self.ok(client, "delete_draft", id=other), {"deleted": other})
        self.fails(client, "send_draft", "404", id=other)
        self.write(os.path.join(self.files, "big.bin"), os.urandom(5 << 20))
        self.ok(client, "create_draft", subject="Big", attachments=["big.bin"])
        self.assertEqual(len(self.double.asked("POST /upload/gmail/v1/users/me/drafts")), 1)

    # -- push

    def test_new_mail_is_announced(self):
        self.api.add(simple("old"))
        client = self.start(self.environment(PUSH="true", POLL_SECONDS="1"))
        self.wait_for_watch(1)
        ident = self.api.add(NOTE)
        self.api.add(simple("mine"), ["SENT"])
        self.assertEqual(self.notification(client), ("event/new_email", {
            "id": ident, "thread": ident, "message_id": "<note-1@example.test>", "from": "Bob B\u00fcrger <bob@example.test>",
            "subject": "Caff\u00e9 \u2603 plans", "date": "Thu, 01 Jan 2026 10:00:00 +0000"}))
        self.silent(client)
        self.api.oldest = 10 ** 6  # history is forgotten: the watch starts anew and tells nothing twice
        self.wait_for_watch(2)
        self.api.oldest = 1
        later = self.api.add(simple("later"))
        self.assertEqual(self.notification(client)[1]["id"], later)
        self.assertIn("the watch starts anew", client.log())

    def wait_for_watch(self, times):
        import time
        until = time.monotonic() + 30
        while len(self.double.asked("GET .*/profile")) < times and time.monotonic() < until:
            time.sleep(0.02)
        self.assertGreaterEqual(len(self.double.asked("GET .*/profile")), times)

    def test_the_watch_ends_when_the_sign_in_does(self):
        self.double.refresh_token = "1//other"
        client = self.start(self.environment(PUSH="true", CREDS_JSON=self.double.credential(refresh_token="1//gone")))
        self.fails(client, "get_profile", "sign in again")
        client.close()
        self.assertIn("nothing is announced until the connector is started again", client.log())
        self.fails(self.start(self.environment(PUSH="maybe")), "get_profile", "GMAIL_PUSH must be true or false")


def _gone():
    from google_double import not_found
    return not_found()


if __name__ == "__main__":
    unittest.main()
