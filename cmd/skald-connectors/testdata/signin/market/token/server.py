import json, os, sys, urllib.error, urllib.request

opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def whoami():
    request = urllib.request.Request(os.environ["API"], headers={"Authorization": "Bearer " + os.environ["TOKEN"]})
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
