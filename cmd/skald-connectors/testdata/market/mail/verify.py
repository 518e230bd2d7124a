import hashlib, json, os, sys

# The digest of the right password.
ok = hashlib.sha256(os.environ.get("MAIL_PASSWORD", "").encode()).hexdigest() == "4104d36f8da2c254349f85836793ebe029e0c957063a34c91c2e9203187b5631"
print("a line of noise")
if ok:
    print(json.dumps({"ok": True, "message": "signed in at %s:%s" % (os.environ["MAIL_HOST"], os.environ["MAIL_PORT"]), "details": {"folders": 3}}))
else:
    print(json.dumps({"ok": False, "message": "the server refused the password %s" % os.environ.get("MAIL_PASSWORD")}))
    sys.exit(1)
