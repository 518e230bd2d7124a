"""MCP server for weather and air quality from Open-Meteo (https://open-meteo.com).

No key. Three services: place search, forecast, air quality; their addresses can be changed
for a server of one's own. Numbers are given with their units as the service names them.
"""

import os
import sys

import api_client
from api_client import ApiError
from mcp_stdio import Server, ToolError

INFO = {"name": "weather", "title": "Weather (Open-Meteo)", "version": "1.0.0"}
INSTRUCTIONS = "Places are given by name, or by latitude and longitude. Weather data by Open-Meteo.com."
USER_AGENT = "skald-weather/1.0 (connector; python-urllib)"
MAX_HOURS = 16 * 24

CURRENT = ("temperature_2m,relative_humidity_2m,apparent_temperature,is_day,precipitation,rain,showers,snowfall,"
           "weather_code,cloud_cover,pressure_msl,wind_speed_10m,wind_direction_10m,wind_gusts_10m")
DAILY = ("weather_code,temperature_2m_max,temperature_2m_min,apparent_temperature_max,apparent_temperature_min,"
         "precipitation_sum,precipitation_probability_max,wind_speed_10m_max,wind_gusts_10m_max,"
         "wind_direction_10m_dominant,sunrise,sunset,uv_index_max")
HOURLY = ("temperature_2m,apparent_temperature,relative_humidity_2m,precipitation_probability,precipitation,"
          "weather_code,cloud_cover,wind_speed_10m,wind_gusts_10m,wind_direction_10m")
AIR = ("european_aqi,us_aqi,pm10,pm2_5,carbon_monoxide,nitrogen_dioxide,sulphur_dioxide,ozone,dust,uv_index,"
       "alder_pollen,birch_pollen,grass_pollen,mugwort_pollen,olive_pollen,ragweed_pollen")
# WMO code 4677 as Open-Meteo uses it.
WEATHER = {
    0: "clear sky", 1: "mainly clear", 2: "partly cloudy", 3: "overcast", 45: "fog", 48: "fog with rime",
    51: "light drizzle", 53: "drizzle", 55: "heavy drizzle", 56: "light freezing drizzle", 57: "freezing drizzle",
    61: "light rain", 63: "rain", 65: "heavy rain", 66: "light freezing rain", 67: "freezing rain",
    71: "light snow", 73: "snow", 75: "heavy snow", 77: "snow grains", 80: "light rain showers", 81: "rain showers",
    82: "violent rain showers", 85: "light snow showers", 86: "heavy snow showers", 95: "thunderstorm",
    96: "thunderstorm with light hail", 99: "thunderstorm with heavy hail"}
# Upper bounds of the European index.
EUROPEAN = ((20, "good"), (40, "fair"), (60, "moderate"), (80, "poor"), (100, "very poor"))

_PLACE = {
    "place": {"type": "string", "description": "Name of a town or place, or a postal code.", "minLength": 1, "maxLength": 200},
    "country": {"type": "string", "description": "Two-letter country code, when the name stands for several places.",
                "pattern": "^[A-Za-z]{2}$"},
    "latitude": {"type": "number", "description": "Latitude in degrees, instead of a place.", "minimum": -90, "maximum": 90},
    "longitude": {"type": "number", "description": "Longitude in degrees, instead of a place.", "minimum": -180, "maximum": 180},
}
_UNITS = {"type": "string", "enum": ["metric", "imperial"], "default": "metric",
          "description": "metric: °C, km/h, mm; imperial: °F, mph, inch."}
_HINTS = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": True}


def _tool(tool, label, description, required, **properties):
    return {"name": tool, "title": label, "description": description, "annotations": dict(_HINTS, title=label),
            "inputSchema": {"type": "object", "properties": properties, "required": required,
                            "additionalProperties": False}}


TOOLS = [
    _tool("find_place", "Find Place", "Finds places by name, with country, region, coordinates and time zone.", ["name"],
          name=dict(_PLACE["place"], minLength=2), country=_PLACE["country"],
          language={"type": "string", "description": "Language of the names.", "pattern": "^[a-z]{2}$", "default": "en"},
          limit={"type": "integer", "minimum": 1, "maximum": 50, "default": 5, "description": "How many places at most."}),
    _tool("current_weather", "Current Weather", "Tells the weather at a place now.", [], units=_UNITS, **_PLACE),
    _tool("forecast", "Weather Forecast", "Tells the weather of the coming days at a place, by day or by hour.", [],
          days={"type": "integer", "minimum": 1, "maximum": 16, "default": 7, "description": "How many days, today included."},
          detail={"type": "string", "enum": ["daily", "hourly"], "default": "daily",
                  "description": "daily: one entry a day; hourly: one an hour."},
          units=_UNITS, **_PLACE),
    _tool("air_quality", "Air Quality",
          "Tells the air quality at a place: European and US index, pollutants, UV and, in Europe, pollen.", [],
          days={"type": "integer", "minimum": 0, "maximum": 5, "default": 0,
                "description": "Also an hourly forecast for so many days."},
          **_PLACE),
]


class Weather:
    """The tools. urls are the addresses of forecast, geocoding and air quality."""

    def __init__(self, client, urls):
        self.client, self.urls = client, urls

    def _get(self, service, path, params):
        try:
            answer = self.client.get(self.urls[service] + path, params)
        except ApiError as e:
            reason = e.body.get("reason") if isinstance(e.body, dict) else None
            raise ToolError("%s%s" % (e, ": " + str(reason)[:300] if reason else "")) from None
        if not isinstance(answer, dict):
            raise ToolError("the service answered with something unexpected")
        return answer

    def _search(self, name, country, language, limit):
        params = {"name": name, "count": min(100, limit * 4) if country else limit, "language": language, "format": "json",
                  "countryCode": country.upper() if country else None}
        found = self._get("geocoding", "/v1/search", params).get("results") or []
        places = [p for p in found if isinstance(p, dict) and _number(p.get("latitude")) and _number(p.get("longitude"))]
        if country:
            places = [p for p in places if str(p.get("country_code", "")).upper() == country.upper()]
        return places[:limit]

    def find_place(self, args):
        places = self._search(args["name"], args.get("country"), args.get("language", "en"), args.get("limit", 5))
        if not places:
            raise ToolError("no place of the name \"%s\" was found" % args["name"])
        keys = ("name", "admin1", "admin2", "country", "country_code", "latitude", "longitude", "elevation", "timezone",
                "population")
        return {"places": [{k: p[k] for k in keys if p.get(k) is not None} for p in places]}

    def _where(self, args):
        """Return (description, latitude, longitude)."""
        both = "latitude" in args, "longitude" in args
        if all(both):
            return {"latitude": args["latitude"], "longitude": args["longitude"]}
        if any(both):
            raise ToolError("latitude and longitude belong together; one of them is missing")
        if "place" not in args:
            raise ToolError("give a place, or latitude and longitude")
        name, _, rest = args["place"].partition(",")
        places = self._search(args["place"], args.get("country"), "en", 1)
        if not places and rest.strip():  # the service knows names, not "name, region"
            places = [p for p in self._search(name.strip(), args.get("country"), "en", 20) if _matches(p, rest)][:1]
        if not places:
            raise ToolError("no place of the name \"%s\" was found; find_place may help" % args["place"])
        place = places[0]
        names = [str(place[k]) for k in ("name", "admin1", "country") if place.get(k)]
        return {"place": ", ".join(names), "latitude": place["latitude"], "longitude": place["longitude"]}

    def _forecast(self, args, params):
        where = self._where(args)
        params.update(latitude=where["latitude"], longitude=where["longitude"], timezone="auto")
        if args.get("units") == "imperial":
            params.update(temperature_unit="fahrenheit", wind_speed_unit="mph", precipitation_unit="inch")
        answer = self._get("forecast", "/v1/forecast", params)
        return dict(where, timezone=answer.get("timezone")), answer

    def current_weather(self, args):
        where, answer = self._forecast(args, {"current": CURRENT})
        now = answer.get("current")
        if not isinstance(now, dict):
            raise ToolError("the service gave no current weather for this place")
        where["now"] = _described(_with_units(now, answer.get("current_units")), now.get("weather_code"))
        return where

    def forecast(self, args):
        kind = args.get("detail", "daily")
        where, answer = self._forecast(args, {kind: DAILY if kind == "daily" else HOURLY,
                                              "forecast_days": args.get("days", 7)})
        where["units"], where[kind] = _rows(answer, kind)
        return where

    def air_quality(self, args):
        where = self._where(args)
        params = {"latitude": where["latitude"], "longitude": where["longitude"], "timezone": "auto", "current": AIR}
        if args.get("days"):
            params.update(hourly="european_aqi,us_aqi,pm10,pm2_5,nitrogen_dioxide,ozone", forecast_days=args["days"])
        answer = self._get("air", "/v1/air-quality", params)
        now = answer.get("current")
        if not isinstance(now, dict):
            raise ToolError("the service gave no air quality for this place")
        out = dict(where, timezone=answer.get("timezone"), now=_with_units(now, answer.get("current_units")))
        index = now.get("european_aqi")
        if _number(index):
            out["now"]["meaning"] = next((word for top, word in EUROPEAN if index <= top), "extremely poor")
        if args.get("days"):
            out["units"], out["hourly"] = _rows(answer, "hourly")
        return out


def _number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _matches(place, rest):
    words = rest.strip().lower()
    return any(words in str(place.get(k, "")).lower() for k in ("admin1", "admin2", "country", "country_code"))


def _with_units(values, units):
    units = units if isinstance(units, dict) else {}
    out = {}
    for key, value in values.items():
        if value is None or key in ("interval", "weather_code", "is_day"):
            continue
        unit = units.get(key)
        out[key] = "%s %s" % (value, unit) if _number(value) and unit and unit not in ("iso8601",) else value
    if "is_day" in values:
        out["daylight"] = bool(values["is_day"])
    return out


def _described(out, code):
    if code in WEATHER:
        out["weather"] = WEATHER[code]
    return out


def _rows(answer, kind):
    """Turn the columns of an answer into (units, one object a time)."""
    columns = answer.get(kind)
    times = columns.get("time") if isinstance(columns, dict) else None
    if not isinstance(times, list) or not times:
        raise ToolError("the service gave no %s values for this place" % kind)
    rows = []
    for n, moment in enumerate(times[:MAX_HOURS]):
        row = {"time": moment}
        for key, values in columns.items():
            if key != "time" and isinstance(values, list) and n < len(values) and values[n] is not None:
                if key == "weather_code":
                    _described(row, values[n])
                else:
                    row[key] = values[n]
        rows.append(row)
    units = answer.get("%s_units" % kind)
    return {k: v for k, v in (units if isinstance(units, dict) else {}).items()
            if k not in ("time", "weather_code") and v not in ("", "iso8601")}, rows


def service_urls(env):
    """Return the addresses of the three services. Raises ApiError."""
    return {key: api_client.base_url(name, env.get(name), default) for key, name, default in (
        ("forecast", "WEATHER_FORECAST_URL", "https://api.open-meteo.com"),
        ("geocoding", "WEATHER_GEOCODING_URL", "https://geocoding-api.open-meteo.com"),
        ("air", "WEATHER_AIR_QUALITY_URL", "https://air-quality-api.open-meteo.com"))}


def dispatch(env):
    """Return the map from a tool's name to its function. Wrong settings are told by each tool."""
    try:
        weather = Weather(api_client.Client(USER_AGENT), service_urls(env))
    except ApiError as e:
        reason = str(e)

        def refuse(_args):
            raise ToolError(reason)
        return {tool["name"]: refuse for tool in TOOLS}
    return {tool["name"]: getattr(weather, tool["name"]) for tool in TOOLS}


def main():
    return Server(INFO, TOOLS, dispatch(os.environ), INSTRUCTIONS).run()


if __name__ == "__main__":
    sys.exit(main())
