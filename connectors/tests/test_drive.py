"""The drive connector against the double of the Drive API."""

import os
import resource
import unittest

from google_double import CLOUD, EMAIL, outage
from google_double_drive import APPS, FOLDER, Drive
from google_helpers import ErrorTests, FolderTests, GoogleTest, SignInTests, SingleFlightTests
from stdio_client import ProtocolTests


class DriveTests(ProtocolTests, SignInTests, ErrorTests, FolderTests, SingleFlightTests, GoogleTest):
    connector, script, variable, service = "drive", "drive_mcp_server.py", "DRIVE", Drive
    probe, pattern, path = "get_account", "GET /drive/v3/about", "/drive/v3/about?fields=user"
    narrow = [CLOUD + "drive.readonly"]
    DATA = b"PDF data"

    def send(self, client, name):
        return client.call("upload_file", file=name)

    def receive(self, client, name):
        return client.call("download_file", id=self.api.add(name, "application/pdf", self.DATA))

    def named(self, answer):
        return [f["name"] for f in answer["files"]]

    # -- finding

    def test_account(self):
        self.assertEqual(self.ok(self.start(), "get_account"),
                         {"email": EMAIL, "name": "Ada", "used": 1000, "limit": 16106127360, "in_trash": 10})

    def test_search(self):
        client = self.start()
        folder = self.api.add("Work", FOLDER)
        self.api.add("Caff\u00e8 d'Italia \\ plan", "text/plain", b"word", folder)
        self.api.add("Sheet", APPS + "spreadsheet", starred=True)
        self.api.add("Theirs", "image/png", b"", owners=[{"emailAddress": "bob@example.test"}])
        self.api.add("Gone", "text/plain", trashed=True)
        plan = "Caff\u00e8 d'Italia \\ plan"
        for query, want in (({"name": "d'Italia \\"}, [plan]), ({"text": "word"}, [plan]), ({"kind": "folder"}, ["Work"]),
                            ({"kind": "image"}, ["Theirs"]), ({"folder": folder}, [plan]), ({"starred": True}, ["Sheet"]),
                            ({"shared_with_me": True}, ["Theirs"]), ({"trashed": True}, ["Gone"]), ({"modified_after": "2026-01-02"}, []),
                            ({"name": "x' or name contains '"}, []), ({}, ["Theirs", "Sheet", plan, "Work"])):
            self.assertEqual(self.named(self.ok(client, "search_files", **query)), want, query)
        first = self.ok(client, "search_files", limit=3)
        self.assertEqual(self.named(self.ok(client, "search_files", limit=3, page=first["next_page"])), ["Work"])
        self.fails(client, "search_files", "modified_after must match", modified_after="yesterday")
        self.fails(client, "search_files", "folder must match", folder="a' or 'b")

    def test_list_and_get(self):
        client = self.start()
        self.api.add("b.txt", "text/plain", b"x")
        folder = self.api.add("Z", FOLDER)
        inside = self.api.add("in.txt", "text/plain", b"abc", folder, description="d")
        self.assertEqual(self.named(self.ok(client, "list_folder")), ["Z", "b.txt"])
        self.assertEqual(self.named(self.ok(client, "list_folder", folder=folder)), ["in.txt"])
        got = self.ok(client, "get_file", id=inside)
        self.assertEqual((got["size"], got["folder"], got["type"], got["access"], got["you_may"]),
                         (3, folder, "text/plain", [{"with": EMAIL, "role": "owner", "type": "user"}], ["edit", "share", "trash"]))
        self.fails(client, "get_file", "404: File not found: nope.", id="nope")
        for hostile in ("../about", "a/b", "a?b", "", "a\n"):
            self.fails(client, "get_file", "id must", id=hostile)

    # -- content

    def test_read_file(self):
        client = self.start()
        text = self.api.add("a.txt", "text/plain", "\ufeffCaff\u00e8\r\nx".encode())
        self.assertEqual(self.ok(client, "read_file", id=text)["text"], "Caff\u00e8\nx")
        document = self.api.add("Doc", APPS + "document")
        self.api.exports[document, "text/plain"] = b"0123456789" * 3000
        got = self.ok(client, "read_file", id=document, start=10, max_chars=100)
        self.assertEqual((got["text"], got["text_range"], got["type"]), ("0123456789" * 10, {"start": 10, "end": 110, "of": 30000}, "document"))
        self.assertEqual(self.ok(client, "read_file", id=self.api.add("e", "text/csv"))["text"], "")
        big = self.api.add("big.log", "text/plain", "\u00e8".encode() * (5 << 19) + b"x")
        got = self.ok(client, "read_file", id=big, max_chars=100)
        self.assertEqual((got["text"], got["note"]), ("\u00e8" * 100, "only the first 4194304 of 5242881 bytes were read"))
        self.fails(client, "read_file", "of the type image/png, not text", id=self.api.add("p", "image/png", b"\x89"))
        self.fails(client, "read_file", "is not text; download_file saves it", id=self.api.add("p", "text/plain", b"a\0b"))
        self.fails(client, "read_file", "a folder has no text", id=self.api.root)
        self.assertEqual(self.ok(client, "read_file", id=self.api.add("l", "text/plain", b"caff\xe8"))["text"], "caff\u00e8")

    def test_download_25_mib_goes_on_after_a_break(self):
        data = os.urandom(25 << 20)
        client, ident = self.start(), self.api.add("big.bin", "application/zip", data)
        self.double.fail("GET .*/files/%s$" % ident, None, 9000000, outage(), 5000000)
        self.assertEqual(self.ok(client, "download_file", id=ident), {"saved": "big.bin", "size": len(data)})
        self.assertTrue(self.read("big.bin") == data)
        ranges = [r[2].get("Range") for r in self.double.asked("GET .*/files/%s$" % ident)]
        self.assertEqual(ranges, [None, None, "bytes=9000000-", "bytes=9000000-", "bytes=14000000-"])
        self.double.fail("GET .*/files/%s$" % ident, None, *[1] * 4)
        self.fails(client, "download_file", "dropped the connection", id=ident)
        self.assertEqual(os.listdir(self.files), ["big.bin"])

    @unittest.skipUnless(hasattr(resource, "prlimit"), "needs the limits of Linux")
    def test_a_full_disk_is_named(self):
        client, ident = self.start(), self.api.add("big.bin", "application/zip", b"x" * (3 << 20))
        resource.prlimit(client.process.pid, resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        self.fails(client, "download_file", "the file cannot be written: File too large", id=ident)
        self.assertEqual((os.listdir(self.files), len(self.double.asked("GET .*/files/%s$" % ident))), ([], 2))

    def test_download_refuses(self):
        client = self.start()
        self.fails(client, "download_file", "a document has no file to download; use export_file", id=self.api.add("D", APPS + "document"))
        wrong = self.api.add("w", "text/plain", b"abc", md5Checksum="x")
        self.api.files[wrong]["md5Checksum"] = "0" * 32
        self.fails(client, "download_file", "not what Drive holds", id=wrong)
        huge = self.api.add("h", "text/plain", b"abc")
        self.api.files[huge]["size"] = str(3 << 30)
        self.fails(client, "download_file", "downloaded at most", id=huge)
        self.assertEqual(os.listdir(self.files), [])

    def test_export(self):
        client = self.start()
        ident = self.api.add("Report: 1/2", APPS + "document")
        self.api.exports[ident, "application/pdf"] = b"%PDF"
        self.assertEqual(self.ok(client, "export_file", id=ident, format="pdf"), {"saved": "Report_ 1_2.pdf", "size": 4})
        self.fails(client, "export_file", "a document can be exported as docx, epub", id=ident, format="xlsx")
        self.api.exports[ident, "text/plain"] = b"x" * (11 << 20)
        self.fails(client, "export_file", "403: This file is too large to be exported.", id=ident, format="txt")
        self.fails(client, "export_file", "use download_file", id=self.api.add("t", "text/plain"), format="pdf")
        self.assertEqual(os.listdir(self.files), ["Report_ 1_2.pdf"])

    def test_upload(self):
        client = self.start()
        self.write(os.path.join(self.files, "r\u00e9sum\u00e9.csv"), b"a,b")
        folder = self.api.add("F", FOLDER)
        made = self.ok(client, "upload_file", file="r\u00e9sum\u00e9.csv", folder=folder)
        kept = self.api.files[made["id"]]
        self.assertEqual((kept["name"], kept["mimeType"], kept["_content"], kept["parents"]), ("r\u00e9sum\u00e9.csv", "text/csv", b"a,b", [folder]))
        made = self.ok(client, "upload_file", file="r\u00e9sum\u00e9.csv", convert=True)
        self.assertEqual((made["name"], made["type"]), ("r\u00e9sum\u00e9", "spreadsheet"))
        self.write(os.path.join(self.files, "empty.bin"), b"")
        made = self.ok(client, "upload_file", file="empty.bin", replace=kept["id"])
        self.assertEqual((made["name"], kept["_content"]), ("r\u00e9sum\u00e9.csv", b""))
        self.fails(client, "upload_file", "cannot be converted", file="empty.bin", convert=True)
        self.fails(client, "upload_file", "404: File not found", file="empty.bin", replace="nope")

    def test_upload_25_mib_goes_on_after_a_break(self):
        client, data = self.start(), os.urandom(25 << 20)
        self.write(os.path.join(self.files, "big.bin"), data)
        self.double.fail("PUT /upload/", None, "late", outage(), "drop", None, outage())
        made = self.ok(client, "upload_file", file="big.bin")
        self.assertTrue(self.api.files[made["id"]]["_content"] == data)
        self.assertEqual(len([f for f in self.api.files.values() if f["name"] == "big.bin"]), 1)
        self.double.fail("PUT /upload/", *[outage()] * 20)
        self.fails(client, "upload_file", "has an outage (503)", file="big.bin")

    # -- filing and sharing

    def test_folder_rename_move_trash(self):
        client = self.start()
        folder = self.ok(client, "create_folder", name="Caff\u00e8")
        self.assertEqual((folder["type"], folder["folder"]), ("folder", self.api.root))
        ident = self.api.add("a", "text/plain")
        self.assertEqual(self.ok(client, "move_file", id=ident, folder=folder["id"])["folder"], folder["id"])
        self.assertEqual(self.ok(client, "move_file", id=ident, folder="root")["folder"], self.api.root)
        self.assertEqual(self.ok(client, "move_file", id=ident, folder="root")["folder"], self.api.root)
        self.fails(client, "move_file", "is not a folder", id=folder["id"], folder=ident)
        self.assertEqual(self.ok(client, "rename_file", id=ident, name="b")["name"], "b")
        self.assertIs(self.ok(client, "trash_file", id=ident)["trashed"], True)
        self.assertNotIn("trashed", self.ok(client, "untrash_file", id=ident))
        locked = self.api.add("l", "text/plain", capabilities={"canEdit": False})
        self.fails(client, "trash_file", "403: The user does not have sufficient permissions for this file.", id=locked)
        self.double.fail("POST .*/files$", "late")
        self.fails(client, "create_folder", "whether it was done is not known", name="once")
        self.assertEqual(len([f for f in self.api.files.values() if f["name"] == "once"]), 1)

    def test_share(self):
        client = self.start()
        ident = self.api.add("a", "text/plain")
        out = self.ok(client, "share_file", id=ident, with_="bob@example.test", role="writer", message="look")
        self.assertEqual(out["access"], {"with": "bob@example.test", "role": "writer", "type": "user"})
        kept = self.api.files[ident]["permissions"]
        self.assertEqual((kept[-1]["_mail"], kept[-1]["_text"]), (["true"], ["look"]))
        self.ok(client, "share_file", id=ident, with_="anyone")
        self.assertEqual((kept[-1]["type"], kept[-1]["role"], kept[-1]["_mail"]), ("anyone", "reader", None))
        self.assertEqual(self.ok(client, "share_file", id=ident, with_="example.org")["access"]["type"], "domain")
        self.ok(client, "share_file", id=ident, with_="list@example.org", group=True, notify=False, message="unsent")
        self.assertEqual((kept[-1]["type"], kept[-1]["_mail"], kept[-1]["_text"]), ("group", ["false"], None))
        for who in ("bob@example.test", "anyone", "EXAMPLE.org"):
            self.ok(client, "unshare_file", id=ident, with_=who)
        self.assertEqual(len(self.api.files[ident]["permissions"]), 2)
        self.fails(client, "unshare_file", "not shared with carl", id=ident, with_="carl@example.test")
        self.fails(client, "unshare_file", "the owner's access stays", id=ident, with_=EMAIL)
        for hostile in ("a@b.org\r\nX", "everyone", "a b@example.org", "x@"):
            self.fails(client, "share_file", "with must match", id=ident, with_=hostile)


if __name__ == "__main__":
    unittest.main()
