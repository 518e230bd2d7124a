"""The Drive part of the double: files and folders in memory.

https://developers.google.com/drive/api/reference/rest/v3
"""

import hashlib
import re

from google_double import CLOUD, EMAIL, Refusal, page

APPS = "application/vnd.google-apps."
FOLDER = APPS + "folder"
FIELD = re.compile(r"(\w+)(?:\(([^()]*)\))?")
TERM = re.compile(r"^(?:'((?:[^'\\]|\\.)*)' in (parents)|(\w+) (contains|=|!=|>) (?:'((?:[^'\\]|\\.)*)'|(true|false))|(sharedWithMe))$")


def refuse(code, message, reason, domain="global"):
    return Refusal(code, message, reason, domain=domain)


def not_there(ident):
    out = refuse(404, "File not found: %s." % ident, "notFound")
    out.body["error"]["errors"][0].update(location="fileId", locationType="parameter")
    return out


class Drive:
    prefix, service, title = "/drive/v3/", "drive.googleapis.com", "Google Drive API"

    def __init__(self):
        self.files, self.count = {}, 0
        self.root = self.add("My Drive", FOLDER, parent=None)
        self.exports = {}
        files, one = "/drive/v3/files", "([^/]+)"
        self.routes = [
            ("GET", "/drive/v3/about", self.about), ("GET", files, self.list), ("POST", files, self.create),
            ("GET", files + "/" + one, self.get), ("PATCH", files + "/" + one, self.update),
            ("GET", files + "/" + one + "/export", self.export),
            ("GET", files + "/" + one + "/permissions", self.permissions), ("POST", files + "/" + one + "/permissions", self.share),
            ("DELETE", files + "/" + one + "/permissions/" + one, self.unshare)]

    @staticmethod
    def accepts(method, _path, granted):
        return any(CLOUD + n in granted for n in ["drive", "drive.file"] + (["drive.readonly"] if method == "GET" else []))

    def add(self, name, kind, content=b"", parent="root", **more):
        """Put a file into Drive; return its id."""
        self.count += 1
        ident = "1double%08d" % self.count
        self.files[ident] = {
            "kind": "drive#file", "id": ident, "name": name, "mimeType": kind, "trashed": False, "starred": False, "shared": False,
            "modifiedTime": "2026-01-01T00:%02d:00.000Z" % (self.count % 60), "createdTime": "2026-01-01T00:00:00.000Z",
            "owners": [{"emailAddress": EMAIL, "me": True}], "webViewLink": "https://drive.google.com/file/d/%s/view" % ident,
            "capabilities": {"canEdit": True, "canShare": True, "canTrash": True},
            "permissions": [{"id": "1", "type": "user", "role": "owner", "emailAddress": EMAIL}]}
        self.files[ident].update(more)
        if parent:
            self.files[ident]["parents"] = [self.find(parent)["id"]]
        if not kind.startswith(APPS):
            self.fill(self.files[ident], content)
        return ident

    @staticmethod
    def fill(file, content):
        file.update(_content=content, size=str(len(content)), md5Checksum=hashlib.md5(content).hexdigest())

    def find(self, ident):
        ident = self.root if ident == "root" else ident
        if ident not in self.files:
            raise not_there(ident)
        return self.files[ident]

    exists = find

    @staticmethod
    def pick(file, query, default="kind,id,name,mimeType"):
        """Return the fields that were asked for; an unknown one is an error, as it is in the API."""
        out = {}
        for name, inner in FIELD.findall(query.get("fields", [default])[0]):
            value = file.get(name)
            if inner and isinstance(value, list):
                value = [{k: v for k, v in item.items() if k in inner.split(",")} for item in value]
            elif inner and isinstance(value, dict):
                value = {k: v for k, v in value.items() if k in inner.split(",")}
            if value is not None:
                out[name] = value
        return out

    # -- methods

    def about(self, query, _body):
        if "fields" not in query:
            raise refuse(400, "The 'fields' parameter is required for this method.", "required")
        return self.pick({"user": {"emailAddress": EMAIL, "displayName": "Ada"},
                          "storageQuota": {"limit": "16106127360", "usage": "1000", "usageInDriveTrash": "10"}}, query)

    def matches(self, file, query):
        for term in query.split(" and "):
            match = TERM.match(term.strip())
            if not match:
                raise refuse(400, "Invalid Value", "invalid")
            value = re.sub(r"\\(.)", r"\1", match.group(1) or match.group(5) or "")
            key, sign = match.group(2) or match.group(3) or match.group(7), match.group(4)
            if key == "parents":
                ok = self.find(value)["id"] in file.get("parents", ())
            elif key == "sharedWithMe":
                ok = not file["owners"][0].get("me")
            elif key == "fullText":
                ok = value.lower() in file["name"].lower() or value.encode() in file.get("_content", b"")
            elif match.group(6):
                ok = file[key] == (match.group(6) == "true")
            else:
                ok = {"contains": value.lower() in file[key].lower(), "=": file[key] == value, "!=": file[key] != value,
                      ">": file[key] > value}[sign]
            if not ok:
                return False
        return True

    def list(self, query, _body):
        words = query.get("q", ["trashed = false"])[0]
        found = [f for f in self.files.values() if f["id"] != self.root and self.matches(f, words)]
        order = query.get("orderBy", [""])[0]
        if order and "fullText" in words:
            raise refuse(403, "Sorting is not supported for queries with fullText terms. Results are always in descending "
                         "relevance order.", "forbidden")
        if order == "folder,name":
            found.sort(key=lambda f: (f["mimeType"] != FOLDER, f["name"]))
        elif order == "modifiedTime desc":
            found.sort(key=lambda f: f["modifiedTime"], reverse=True)
        items, more = page(found, query, 100, 1000, "pageSize")
        inner = re.search(r"files\((.*)\)$", query["fields"][0]).group(1)
        return dict({"files": [self.pick(f, {"fields": [inner]}) for f in items], "incompleteSearch": False}, **more)

    def get(self, ident, query, _body):
        file = self.find(ident)
        if query.get("alt") != ["media"]:
            return self.pick(file, query)
        if "_content" not in file:
            raise refuse(403, "Only files with binary content can be downloaded. Use Export with Docs Editors files.", "fileNotDownloadable")
        header = self.double.requests[-1][2].get("Range", "")
        match = re.match(r"^bytes=(\d+)-(\d*)$", header)
        if not match:
            return 200, {"Content-Type": file["mimeType"]}, file["_content"]
        first, last = int(match.group(1)), int(match.group(2) or len(file["_content"]) - 1)
        if first >= len(file["_content"]):
            raise refuse(416, "Request range not satisfiable", "requestedRangeNotSatisfiable")
        return 206, {"Content-Type": file["mimeType"]}, file["_content"][first:last + 1]

    def export(self, ident, query, _body):
        file = self.find(ident)
        if not file["mimeType"].startswith(APPS):
            raise refuse(403, "Export only supports Docs Editors files.", "fileNotExportable")
        data = self.exports.get((ident, query["mimeType"][0]))
        if data is None:
            raise refuse(400, "The requested conversion is not supported.", "badRequest")
        if len(data) > 10 << 20:
            raise refuse(403, "This file is too large to be exported.", "exportSizeLimitExceeded")
        return 200, {"Content-Type": query["mimeType"][0]}, data

    def create(self, query, body):
        kind, content = body.pop("_content", (body.get("mimeType", "application/octet-stream"), b""))
        made = self.add(body["name"], body.get("mimeType", kind), content, body.get("parents", ["root"])[0])
        return self.pick(self.files[made], query)

    def update(self, ident, query, body):
        file = self.find(ident)
        if not file["capabilities"]["canEdit"]:
            raise refuse(403, "The user does not have sufficient permissions for this file.", "insufficientFilePermissions")
        if "_content" in body:
            kind, content = body.pop("_content")
            file["mimeType"] = kind
            self.fill(file, content)
        file.update(body)
        parents = [p for p in file.get("parents", ()) if p not in query.get("removeParents", [""])[0].split(",")]
        for added in query.get("addParents", ()):
            parents.append(self.find(added)["id"])
        if len(parents) > 1:
            raise refuse(403, "A file may only have one parent.", "cannotAddParent")
        file["parents"] = parents
        return self.pick(file, query)

    def permissions(self, ident, query, _body):
        items, more = page(self.find(ident)["permissions"], query, 100, 100, "pageSize")
        return dict({"permissions": items}, **more)

    def share(self, ident, query, body):
        file = self.find(ident)
        if body["type"] in ("user", "group") and "emailAddress" not in body or body["role"] not in ("reader", "commenter", "writer"):
            raise refuse(400, "The permission is invalid.", "invalidSharingRequest")
        made = dict(body, id=str(100 + len(file["permissions"])), _mail=query.get("sendNotificationEmail"), _text=query.get("emailMessage"))
        file["permissions"].append(made)
        file["shared"] = True
        return self.pick(made, query)

    def unshare(self, ident, permission, _query, _body):
        file = self.find(ident)
        if permission not in [p["id"] for p in file["permissions"]]:
            raise refuse(404, "Permission not found: %s." % permission, "notFound")
        file["permissions"] = [p for p in file["permissions"] if p["id"] != permission]
