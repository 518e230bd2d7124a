import json, sys, urllib.error
import server

try:
    print(json.dumps({"ok": True, "message": "signed in as " + server.whoami()}))
except urllib.error.HTTPError as e:
    print(json.dumps({"ok": False, "message": "the provider answered %d" % e.code}))
    sys.exit(1)
