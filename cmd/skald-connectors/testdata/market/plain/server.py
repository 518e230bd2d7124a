import json, os, sys

TOOLS = [
    {"name": "echo", "title": "Echo", "description": "Says it again.", "inputSchema": {"type": "object"}},
    {"name": "send_it", "description": "Sends it.", "inputSchema": {"type": "object"}},
]

for line in sys.stdin:
    msg = json.loads(line)
    if "id" not in msg:
        continue
    reply = {"jsonrpc": "2.0", "id": msg["id"]}
    if msg["method"] == "initialize":
        reply["result"] = {"protocolVersion": msg["params"]["protocolVersion"], "capabilities": {"tools": {}},
                           "serverInfo": {"name": "test", "version": "1"}, "instructions": "Be kind."}
    elif msg["method"] == "tools/list":
        reply["result"] = {"tools": TOOLS}
    elif msg["method"] == "tools/call" and msg["params"]["name"] == "echo":
        text = msg["params"].get("arguments", {}).get("text", "")
        if text == "die":
            sys.exit(7)
        if text == "leak":
            text = "the password is " + os.environ.get("MAIL_PASSWORD", "")
        print("echo was called", file=sys.stderr, flush=True)
        reply["result"] = {"content": [{"type": "text", "text": text}], "isError": text == "fail"}
    else:
        reply["error"] = {"code": -32601, "message": "no such method"}
    print(json.dumps(reply), flush=True)
