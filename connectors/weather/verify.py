"""Asks the three services of the weather connector one small question each.

Prints one JSON line {"ok", "message", "details"}; exit code 0 when all answered.
"""

import json
import os
import sys

import api_client
from mcp_stdio import ToolError
from weather_mcp_server import USER_AGENT, Weather, service_urls

HERE = {"latitude": 52.52, "longitude": 13.41}


def run():
    """Return the result object."""
    try:
        weather = Weather(api_client.Client(USER_AGENT), service_urls(os.environ))
    except api_client.ApiError as e:
        return {"ok": False, "message": str(e)}
    api_client.TIMEOUT = 8  # three questions have to fit into the time limit of verify
    details, failed = {}, []
    for name, ask in (("place search", lambda: weather.find_place({"name": "Berlin", "limit": 1})),
                      ("forecast", lambda: weather.current_weather(HERE)),
                      ("air quality", lambda: weather.air_quality(HERE))):
        try:
            ask()
            details[name] = "answered"
        except ToolError as e:
            details[name] = str(e)
            failed.append("%s: %s" % (name, e))
    if failed:
        return {"ok": False, "message": "; ".join(failed), "details": details}
    return {"ok": True, "message": "place search, forecast and air quality answered", "details": details}


def main():
    result = run()
    sys.stdout.write(json.dumps(result) + "\n")
    sys.stdout.flush()
    return 0 if result["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
