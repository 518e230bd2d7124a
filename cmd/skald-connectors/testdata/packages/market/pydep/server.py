import json
import sys

import low_wheel

for line in sys.stdin:
    msg = json.loads(line)
    if "id" not in msg:
        continue
    result = {"tools": [{"name": low_wheel.name, "description": "Named by its dependency.", "inputSchema": {"type": "object"}}]}
    if msg["method"] == "initialize":
        result = {"protocolVersion": msg["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "test", "version": "1"}}
    print(json.dumps({"jsonrpc": "2.0", "id": msg["id"], "result": result}), flush=True)
