"""What is shipped, as a whole: the copies of shared files, the manifests, the icons, the syntax."""

import ast
import json
import os
import re
import unittest
import xml.etree.ElementTree as ET

from stdio_client import ROOT

SHARED = {"mcp_stdio.py": ("drive", "email", "gcal", "gmail", "http-fetch", "weather", "wikipedia"),
          "api_client.py": ("weather", "wikipedia"),
          "email_message.py": ("email", "gmail")}
GOOGLE = ("drive", "gcal", "gmail")
SHARED.update({"google_http.py": GOOGLE, "google_api.py": GOOGLE, "google_serve.py": GOOGLE, "google_watch.py": ("gcal", "gmail"),
               "google_media.py": ("drive", "gmail"), "google_files.py": ("drive", "gmail")})
UNSEEDED = ("email", "whatsapp") + GOOGLE  # connectors that need a person before they can work
NODE = ("whatsapp",)  # the others are Python
OLDEST = (3, 8)  # the oldest Python that a manifest promises
MAX_LINES = 400
# The standard library of 3.8, as far as it is used; anything else would be a dependency.
STANDARD = set("ast base64 binascii calendar concurrent datetime email errno gzip hashlib html http imaplib ipaddress json "
               "mimetypes os pwd queue random re secrets signal smtplib socket ssl stat sys threading time urllib zlib zoneinfo".split())


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as f:
        return f.read()


def load(*path):
    return json.loads(read(*path))


IDS = load("index.json")


class Shipped(unittest.TestCase):
    def test_there_are_connectors(self):
        self.assertEqual(IDS, ["drive", "email", "gcal", "gmail", "http-fetch", "weather", "whatsapp", "wikipedia"])
        folders = [n for n in os.listdir(ROOT) if os.path.exists(os.path.join(ROOT, n, "fragment.json"))]
        self.assertEqual(sorted(folders), sorted(IDS))

    def test_shared_files_are_the_same(self):
        for name, owners in SHARED.items():
            for owner in owners:
                self.assertEqual(read(owner, name), read(owners[0], name), "%s/%s" % (owner, name))

    def test_python_files(self):
        for ident in IDS:
            if ident in NODE:
                continue
            names = [n for n in os.listdir(os.path.join(ROOT, ident)) if n.endswith(".py")]
            own = {n[:-3] for n in names}
            self.assertIn("verify.py", names)
            for name in names:
                source = read(ident, name)
                tree = ast.parse(source, name, feature_version=OLDEST)
                self.assertTrue(ast.get_docstring(tree), "%s/%s has no docstring" % (ident, name))
                self.assertLess(source.count("\n"), MAX_LINES, "%s/%s" % (ident, name))
                for node in ast.walk(tree):
                    modules = [a.name for a in node.names] if isinstance(node, ast.Import) else \
                        [node.module] if isinstance(node, ast.ImportFrom) else []
                    for module in modules:
                        self.assertIn(module.split(".")[0], STANDARD | own, "%s/%s" % (ident, name))
                self.assertFalse(own & STANDARD, "a file would hide a module of the standard library")
                self.assertIsNone(re.search(r"(?m)^\s*print\(", source), "%s/%s prints" % (ident, name))

    def test_manifests(self):
        for ident in IDS:
            fragment, manifest = load(ident, "fragment.json"), load(ident, "connector.json")
            for key in ("id", "name", "type", "scope", "version", "version_string", "version_release_date", "requires",
                        "tags", "auth", "tools"):
                self.assertEqual(fragment.get(key), manifest.get(key), "%s: %s" % (ident, key))
            self.assertEqual((fragment["id"], fragment["folder"]), (ident, ident))
            self.assertEqual(fragment.get("seed_since"), None if ident in UNSEEDED else 1)
            self.assertEqual({d["lang"] for d in manifest["docs"]}, {"en", "it"})
            script = manifest["mcp_config"]["args"][0]
            if ident in NODE:
                self.assertEqual(manifest["launch_command"], "node " + script)
                self.assertIn("version: '%s'" % manifest["version_string"], read(ident, script))
                continue
            self.assertEqual(manifest["launch_command"], "python3 " + script)
            self.assertIn('"version": "%s"' % manifest["version_string"], read(ident, script))
            self.assertLessEqual(manifest["verify"]["timeout_secs"], 120)

    def test_node_files(self):
        for ident in NODE:
            self.assertEqual(load(ident, "package.json")["version"], load(ident, "connector.json")["version_string"])
            lock = load(ident, "package-lock.json")["packages"]
            for name, package in lock.items():
                self.assertTrue(name == "" or package["integrity"].startswith("sha512-"), name)
                self.assertNotIn("resolved", package, "the address is the person's registry")
            for name in os.listdir(os.path.join(ROOT, ident)):
                if name.endswith(".mjs"):
                    self.assertTrue(read(ident, name).startswith("// "), name)
                    self.assertLess(read(ident, name).count("\n"), MAX_LINES, name)

    def test_fields(self):
        for ident in IDS:
            manifest = load(ident, "connector.json")
            code = "".join(read(ident, n) for n in os.listdir(os.path.join(ROOT, ident)) if n.endswith((".py", ".mjs")))
            names = {field["name"] for field in manifest["env"]}
            for field in manifest["env"]:
                wanted = "process.env.%s" if ident in NODE else '"%s"'
                self.assertIn(wanted % field["name"], code, "%s is never read" % field["name"])
                self.assertTrue(field["label"] and field["description"])
                self.assertFalse(field["secret"] and "default" in field)
                self.assertTrue("default" in field or "example" in field or field["secret"], field["name"])
                self.assertTrue(not field["required"] or "default" not in field)
                if "choices" in field:
                    self.assertIn(field["default"], field["choices"])
            for token in re.findall(r"\{(?:ENV|SECRET):([^}]*)\}", json.dumps(manifest["permissions"])):
                self.assertIn(token, names)

    def test_icons(self):
        for ident in IDS:
            for name, size in (("icon_sm.svg", "48"), ("icon_lg.svg", "96")):
                root = ET.fromstring(read(ident, name))
                self.assertEqual((root.get("width"), root.get("height"), root.get("viewBox")), (size, size, "0 0 48 48"))
                self.assertLess(len(read(ident, name)), 1500)
                self.assertNotIn("href", read(ident, name))

    def test_changelog(self):
        text = read("CHANGELOG.md")
        self.assertIn("## [Unreleased]", text)
        for ident in IDS:
            manifest = load(ident, "connector.json")
            self.assertIn("`%s` %s" % (ident, manifest["version_string"]), text)
            self.assertIn("## " + manifest["version_release_date"], text)


if __name__ == "__main__":
    unittest.main()
