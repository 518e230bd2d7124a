import json, os, sys, urllib.error, urllib.parse, urllib.request

opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def whoami():
    """Asks the API as Google's libraries do: with the token that is there, or a new one."""
    with open(os.environ["SIGNED_CREDS_PATH"], encoding="utf-8") as file:
        creds = json.load(file)
    form = urllib.parse.urlencode({"grant_type": "refresh_token", "refresh_token": creds["refresh_token"], "client_id": creds["client_id"], "client_secret": creds["client_secret"]})
    with opener.open(creds["token_uri"], form.encode()) as reply:
        token = json.load(reply)["access_token"]
    request = urllib.request.Request(creds["token_uri"].replace("/token", "/api"), headers={"Authorization": "Bearer " + token})
    with opener.open(request) as reply:
        return json.load(reply)["email"]


TOOLS = [{"name": "whoami", "title": "Who am I", "description": "Says who is signed in.", "inputSchema": {"type": "object"}}]

if __name__ == "__main__":
    for line in sys.stdin:
        msg = json.loads(line)
        if "id" not in msg:
            continue
        reply = {"jsonrpc": "2.0", "id": msg["id"]}
        if msg["method"] == "initialize":
            reply["result"] = {"protocolVersion": msg["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "test", "version": "1"}}
        elif msg["method"] == "tools/list":
            reply["result"] = {"tools": TOOLS}
        elif msg["method"] == "tools/call":
            try:
                reply["result"] = {"content": [{"type": "text", "text": whoami()}]}
            except urllib.error.HTTPError as e:
                reply["result"] = {"content": [{"type": "text", "text": "the API answered %d" % e.code}], "isError": True}
        else:
            reply["error"] = {"code": -32601, "message": "no such method"}
        print(json.dumps(reply), flush=True)
