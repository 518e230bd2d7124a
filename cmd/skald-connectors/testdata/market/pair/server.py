"""A connector that a phone signs in. Its session is auth/session.json; the phone is the file state/phone: "scan" reads
the code, "gone" removes this machine from the phone's list."""
import json, os, sys

TOOLS = [{"name": name, "title": name.title(), "description": "For tests.", "inputSchema": {"type": "object"}}
         for name in ("echo", "login_status", "logout")]
SESSION, PHONE = "auth/session.json", "state/phone"
asked = 0
joining = False


def phone():
    try:
        with open(PHONE) as f:
            return f.read().strip()
    except OSError:
        return ""


def status():
    global asked, joining
    asked += 1
    if os.path.exists(SESSION):
        if phone() == "gone":
            return {"state": "logged_out", "message": "removed on the phone"}
        return {"state": "connecting" if asked == 1 else "ready", "qr": None}
    if joining:
        with open(SESSION, "w") as f:
            f.write("{}")
        return {"state": "ready"}
    if phone() == "scan":
        joining = True
        return {"state": "connecting", "message": "syncing"}
    if phone() == "odd":
        return {"state": "huh"}
    return {"state": "need_scan", "qr": "PAIR %d" % asked, "message": "open the app"}


def call(name, arguments):
    if name == "login_status":
        answer = status()
        return {"content": [{"type": "text", "text": json.dumps(answer)}], "structuredContent": answer}
    if name == "logout":
        if phone() == "deaf":
            return {"content": [{"type": "text", "text": "no network"}], "isError": True}
        if os.path.exists(SESSION):
            os.remove(SESSION)
            with open("state/told", "a") as f:
                f.write("logout\n")
        return {"content": []}
    signed_in = os.path.exists(SESSION) and phone() != "gone"
    return {"content": [{"type": "text", "text": arguments.get("text", "") if signed_in else "nobody is signed in"}],
            "isError": not signed_in}


for line in sys.stdin:
    msg = json.loads(line)
    if "id" not in msg:
        continue
    reply = {"jsonrpc": "2.0", "id": msg["id"]}
    if msg["method"] == "initialize":
        reply["result"] = {"protocolVersion": msg["params"]["protocolVersion"], "capabilities": {"tools": {}},
                           "serverInfo": {"name": "pair", "version": "1"}}
    elif msg["method"] == "tools/list":
        reply["result"] = {"tools": TOOLS}
    elif msg["method"] == "tools/call":
        reply["result"] = call(msg["params"]["name"], msg["params"].get("arguments", {}))
    else:
        reply["error"] = {"code": -32601, "message": "no such method"}
    print(json.dumps(reply), flush=True)
