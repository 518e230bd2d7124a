"""The weather connector against a double of Open-Meteo's three services on loopback.

The double answers in the shapes of the public API: columns by variable, units beside them,
{"error": true, "reason": …} with status 400 for parameters it does not take.
"""

import unittest

from loopback import Site, data, page
from stdio_client import ProtocolTests, ServerTest

BERLIN = {"id": 2950159, "name": "Berlin", "latitude": 52.52437, "longitude": 13.41053, "elevation": 74.0,
          "feature_code": "PPLC", "country_code": "DE", "timezone": "Europe/Berlin", "population": 3426354,
          "country": "Germany", "admin1": "State of Berlin"}
US = {"id": 5083330, "name": "Berlin", "latitude": 44.46867, "longitude": -71.18508, "country_code": "US",
      "timezone": "America/New_York", "country": "United States", "admin1": "New Hampshire"}
UNITS = {"temperature_2m": "°C", "relative_humidity_2m": "%", "wind_speed_10m": "km/h", "weather_code": "wmo code",
         "precipitation": "mm", "temperature_2m_max": "°C", "temperature_2m_min": "°C", "precipitation_sum": "mm",
         "sunrise": "iso8601", "european_aqi": "EAQI", "pm10": "μg/m³", "time": "iso8601"}
VALUES = {"temperature_2m": 4.2, "relative_humidity_2m": 81, "wind_speed_10m": 11.5, "weather_code": 61, "is_day": 1,
          "precipitation": 0.4, "temperature_2m_max": 6.0, "temperature_2m_min": -1.5, "precipitation_sum": 2.0,
          "sunrise": "2026-01-01T08:17", "european_aqi": 34, "us_aqi": 51, "pm10": 12.1}


def search(query):
    if len(query.get("name", "")) < 2 or query["name"] not in ("Berlin", "10115"):
        return data({"generationtime_ms": 0.5})  # no "results" at all, as the service does
    found = [p for p in (BERLIN, US) if query.get("countryCode", p["country_code"]) == p["country_code"]]
    return data({"results": found[:int(query["count"])], "generationtime_ms": 0.5})


def answer(query):
    """The forecast and air quality services."""
    if not -90 <= float(query["latitude"]) <= 90:
        return data({"error": True, "reason": "Latitude must be in range of -90 to 90°."}, 400)
    units = dict(UNITS)
    if query.get("temperature_unit") == "fahrenheit":
        units["temperature_2m"] = "°F"
    out = {"latitude": 52.52, "longitude": 13.41, "generationtime_ms": 0.1, "utc_offset_seconds": 3600,
           "timezone": "Europe/Berlin", "timezone_abbreviation": "CET", "elevation": 38.0}
    if "current" in query:
        names = query["current"].split(",")
        out["current_units"] = dict({"time": "iso8601", "interval": "seconds"}, **{n: units.get(n, "") for n in names})
        out["current"] = dict({"time": "2026-01-01T12:00", "interval": 900}, **{n: VALUES.get(n) for n in names})
    for kind in ("daily", "hourly"):
        if kind in query:
            names, days = query[kind].split(","), int(query.get("forecast_days", 7))
            count = days if kind == "daily" else days * 24
            times = ["2026-01-%02d" % (n + 1) if kind == "daily" else "2026-01-%02dT%02d:00" % (n // 24 + 1, n % 24)
                     for n in range(count)]
            out[kind + "_units"] = dict({"time": "iso8601"}, **{n: units.get(n, "") for n in names})
            out[kind] = dict({"time": times}, **{n: [VALUES.get(n)] * count for n in names})
    return data(out)


class Weather(ProtocolTests, ServerTest):
    connector, script = "weather", "weather_mcp_server.py"

    def setUp(self):
        self.routes = {"/v1/search": search, "/v1/forecast": answer, "/v1/air-quality": answer}
        self.site = Site(self.routes)
        self.addCleanup(self.site.close)

    def environment(self):
        return {name: self.site.url + "/" for name in
                ("WEATHER_FORECAST_URL", "WEATHER_GEOCODING_URL", "WEATHER_AIR_QUALITY_URL")}

    def test_find_place(self):
        client = self.start()
        places = self.ok(client, "find_place", name="Berlin")["places"]
        self.assertEqual([p["country_code"] for p in places], ["DE", "US"])
        self.assertEqual(places[0]["population"], 3426354)
        self.assertEqual(len(self.ok(client, "find_place", name="Berlin", country="us", limit=3)["places"]), 1)
        self.fails(client, "find_place", 'no place of the name "Nowhere" was found', name="Nowhere")
        self.fails(client, "find_place", "name must not be empty", name="B")
        self.fails(client, "find_place", "country must match", name="Berlin", country="Germany")

    def test_current_weather(self):
        client = self.start()
        now = self.ok(client, "current_weather", place="Berlin")
        self.assertEqual(now["place"], "Berlin, State of Berlin, Germany")
        self.assertEqual(now["now"]["temperature_2m"], "4.2 °C")
        self.assertEqual(now["now"]["weather"], "light rain")
        self.assertIs(now["now"]["daylight"], True)
        self.assertEqual(self.ok(client, "current_weather", place="Berlin, New Hampshire")["latitude"], 44.46867)
        now = self.ok(client, "current_weather", latitude=1, longitude=2.5, units="imperial")
        self.assertEqual(now["now"]["temperature_2m"], "4.2 °F")
        self.assertNotIn("place", now)

    def test_place_is_needed(self):
        client = self.start()
        for tool in ("current_weather", "forecast", "air_quality"):
            self.fails(client, tool, "give a place, or latitude and longitude")
            self.fails(client, tool, "belong together", latitude=1)
            self.fails(client, tool, "latitude must be at most 90", latitude=91, longitude=1)
            self.fails(client, tool, "was found; find_place may help", place="Nowhere, at all")

    def test_forecast(self):
        client = self.start()
        daily = self.ok(client, "forecast", place="Berlin", days=16)
        self.assertEqual(len(daily["daily"]), 16)
        self.assertEqual(daily["daily"][15]["time"], "2026-01-16")
        self.assertEqual(daily["daily"][0]["temperature_2m_min"], -1.5)
        self.assertEqual(daily["daily"][0]["weather"], "light rain")
        self.assertEqual(daily["units"]["temperature_2m_max"], "°C")
        hourly = self.ok(client, "forecast", place="Berlin", days=16, detail="hourly")
        self.assertEqual(len(hourly["hourly"]), 384)
        self.fails(client, "forecast", "days must be at most 16", place="Berlin", days=17)
        self.fails(client, "forecast", "days must be an integer", place="Berlin", days=1.5)
        self.fails(client, "forecast", "days must be an integer", place="Berlin", days=True)
        self.fails(client, "forecast", "detail must be one of daily, hourly", place="Berlin", detail="weekly")

    def test_air_quality(self):
        client = self.start()
        air = self.ok(client, "air_quality", place="Berlin", days=2)
        self.assertEqual((air["now"]["pm10"], air["now"]["meaning"]), ("12.1 μg/m³", "fair"))
        self.assertEqual(len(air["hourly"]), 48)
        self.assertNotIn("hourly", self.ok(client, "air_quality", place="Berlin"))

    def test_the_service_refuses(self):
        self.routes["/v1/forecast"] = lambda _q: data({"error": True, "reason": "No data here."}, 400)
        self.fails(self.start(), "current_weather", "answered 400 Bad Request: No data here.", latitude=1, longitude=1)

    def test_odd_answers(self):
        client = self.start()
        for route, words in ((page("<html>sign in</html>"), "a web page instead of data"), (page("nope", "text/plain"), "not JSON"),
                             (lambda _q: data([]), "something unexpected"), (lambda _q: data({}), "gave no current weather"),
                             (lambda _q: data({"current": []}), "gave no current weather"),
                             (page("x" * (9 << 20), "application/json"), "more than 8388608 bytes"),
                             (page("", status=302, Location="http://example.invalid/"), "which is not followed"),
                             (page("", status=500), "answered 500")):
            self.routes["/v1/forecast"] = route
            self.fails(client, "current_weather", words, latitude=1, longitude=1)
        self.routes["/v1/forecast"] = lambda _q: data({"daily": {"time": "x"}})
        self.fails(client, "forecast", "gave no daily values", latitude=1, longitude=1)

    def test_busy_is_tried_again_once(self):
        calls = []

        def busy(query):
            calls.append(1)
            return answer(query) if len(calls) == 2 else (429, {"Retry-After": "0"}, b"{}")
        self.routes["/v1/forecast"] = busy
        client = self.start()
        self.ok(client, "current_weather", latitude=1, longitude=1)
        self.assertEqual(len(calls), 2)
        self.routes["/v1/forecast"] = lambda _q: (429, {"Retry-After": "3600"}, b"{}")
        self.fails(client, "current_weather", "limits how often", latitude=1, longitude=1)

    def test_user_agent(self):
        self.ok(self.start(), "find_place", name="Berlin")
        self.assertTrue(self.site.requests[-1][1]["User-Agent"].startswith("skald-weather/"))

    def test_unusable_settings(self):
        for value in ("ftp://x", "nonsense", "http://u:p@host", "http://h/?q=1"):
            self.fails(self.start({"WEATHER_FORECAST_URL": value}), "find_place", "WEATHER_FORECAST_URL must be", name="Berlin")

    def test_verify(self):
        code, result, _ = self.run_verify(self.environment())
        self.assertEqual((code, result["ok"], result["message"]),
                         (0, True, "place search, forecast and air quality answered"))
        code, result, _ = self.run_verify(dict(self.environment(), WEATHER_AIR_QUALITY_URL="http://127.0.0.1:1"))
        self.assertEqual((code, result["ok"], result["message"]), (1, False, "air quality: 127.0.0.1 refused the connection"))
        code, result, _ = self.run_verify(dict(self.environment(), WEATHER_FORECAST_URL="https://weather.invalid"))
        self.assertIn("there is no host weather.invalid", result["message"])


if __name__ == "__main__":
    unittest.main()
