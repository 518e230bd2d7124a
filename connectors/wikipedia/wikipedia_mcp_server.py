"""MCP server for Wikipedia, or another MediaWiki site with text extracts.

Everything goes through the action API (/w/api.php), format version 2, which every
MediaWiki has. The language of a call becomes the host name, so it is checked to be one.
"""

import html
import os
import re
import sys
import urllib.parse

import api_client
from api_client import ApiError
from mcp_stdio import Server, ToolError

INFO = {"name": "wikipedia", "title": "Wikipedia", "version": "1.0.0"}
INSTRUCTIONS = "Search for the exact title first when you do not know it. Text from Wikipedia is under CC BY-SA 4.0."
LANGUAGE = "^[a-z][a-z0-9-]{1,19}$"
MAX_LANGUAGE_PAGES = 3  # of 500 links each

_LANGUAGE = {"type": "string", "pattern": LANGUAGE, "description": "Language code as in the address of that Wikipedia, "
             "such as en, it, zh-yue. Left out: the one that the user has set."}
_TITLE = {"type": "string", "minLength": 1, "maxLength": 255, "description": "Title of the page."}
_HINTS = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": True}


def _tool(tool, label, description, required, **properties):
    return {"name": tool, "title": label, "description": description, "annotations": dict(_HINTS, title=label),
            "inputSchema": {"type": "object", "properties": properties, "required": required,
                            "additionalProperties": False}}


TOOLS = [
    _tool("search", "Search Wikipedia", "Searches for pages and returns titles with the words around the hits.", ["query"],
          query={"type": "string", "minLength": 1, "maxLength": 300, "description": "Words to search for."},
          limit={"type": "integer", "minimum": 1, "maximum": 50, "default": 10, "description": "How many pages at most."},
          offset={"type": "integer", "minimum": 0, "maximum": 9950, "default": 0,
                  "description": "How many pages to pass over."},
          language=_LANGUAGE),
    _tool("get_summary", "Read Summary", "Returns the introduction of a page as plain text.", ["title"],
          title=_TITLE, language=_LANGUAGE),
    _tool("get_page", "Read Page",
          "Returns a page as plain text with its section headings, or one section of it. A long text is given in parts.",
          ["title"], title=_TITLE,
          section={"type": "string", "minLength": 1, "maxLength": 300, "description": "Heading of the only section to return."},
          start={"type": "integer", "minimum": 0, "maximum": 10000000, "default": 0,
                 "description": "Character of the text to start at."},
          max_chars={"type": "integer", "minimum": 100, "maximum": 200000, "default": 20000,
                     "description": "How many characters at most."},
          language=_LANGUAGE),
    _tool("list_languages", "List Languages of a Page", "Lists the other languages in which a page exists, with its title there.",
          ["title"], title=_TITLE, language=_LANGUAGE),
]


class Wikipedia:
    """The tools. base is the address of another site, or empty."""

    def __init__(self, client, language, base):
        self.client, self.language, self.base = client, language, base

    def _query(self, args, params):
        """Return the answer of the action API. Raises ToolError with the site's own words."""
        base = self.base or "https://%s.wikipedia.org" % args.get("language", self.language)
        params = dict(params, action="query", format="json", formatversion="2", utf8="1")
        try:
            answer = self.client.get(base + "/w/api.php", params)
        except ApiError as e:
            if e.kind == "host" and not self.base:
                raise ToolError("%s; is there a Wikipedia in this language?" % e) from None
            raise ToolError(str(e)) from None
        if not isinstance(answer, dict):
            raise ToolError("the site answered with something unexpected")
        error = answer.get("error")
        if isinstance(error, dict):
            raise ToolError("the site refused: %s" % str(error.get("info") or error.get("code"))[:300])
        return answer

    def _page(self, args, params):
        """Return the one page that a title stands for, redirects followed."""
        answer = self._query(args, dict(params, titles=_title(args["title"]), redirects="1"))
        pages = (answer.get("query") or {}).get("pages") or [{}]
        page = pages[0]
        if page.get("invalid"):
            raise ToolError("\"%s\" cannot be a title: %s" % (args["title"], str(page.get("invalidreason", ""))[:200]))
        if page.get("missing") or "title" not in page:
            raise ToolError("there is no page \"%s\"; search finds the exact title" % args["title"])
        redirects = (answer.get("query") or {}).get("redirects") or []
        if redirects:
            page["redirected_from"] = redirects[0].get("from")
        return page, answer

    def search(self, args):
        answer = self._query(args, {"list": "search", "srsearch": args["query"], "srlimit": args.get("limit", 10),
                                    "sroffset": args.get("offset", 0), "srprop": "snippet|wordcount|timestamp",
                                    "srinfo": "totalhits|suggestion"})
        query = answer.get("query") or {}
        info = query.get("searchinfo") or {}
        out = {"total": info.get("totalhits", 0), "pages": [
            {"title": hit.get("title"), "snippet": _plain(hit.get("snippet", "")), "words": hit.get("wordcount"),
             "changed": hit.get("timestamp")} for hit in query.get("search") or [] if isinstance(hit, dict)]}
        if info.get("suggestion"):
            out["did_you_mean"] = info["suggestion"]
        return out

    def get_summary(self, args):
        page, _ = self._page(args, {"prop": "extracts|description|info|pageprops", "exintro": "1", "explaintext": "1",
                                    "inprop": "url", "ppprop": "disambiguation"})
        out = _head(page)
        out["summary"] = (page.get("extract") or "").strip()[:20000]
        if not out["summary"]:
            out["note"] = "the page has no introduction; get_page reads the rest"
        return out

    def get_page(self, args):
        page, _ = self._page(args, {"prop": "extracts|description|info|pageprops", "explaintext": "1",
                                    "exsectionformat": "wiki", "inprop": "url", "ppprop": "disambiguation"})
        text = (page.get("extract") or "").strip()
        out = _head(page)
        out["sections"] = [name for _, name, _, _ in _sections(text)][:300]
        if "section" in args:
            text = _section(text, args["section"])
        start, most = args.get("start", 0), args.get("max_chars", 20000)
        if start and start >= len(text):
            raise ToolError("start is behind the end: the text has %d characters" % len(text))
        out["text"] = text[start:start + most]
        if start or len(text) > start + most:
            out["text_range"] = {"start": start, "end": min(len(text), start + most), "of": len(text)}
        return out

    def list_languages(self, args):
        params = {"prop": "langlinks", "lllimit": "500", "llprop": "url|langname|autonym"}
        links, following = [], {}
        for _ in range(MAX_LANGUAGE_PAGES):
            page, answer = self._page(args, dict(params, **following))
            links += [link for link in page.get("langlinks") or [] if isinstance(link, dict)]
            following = answer.get("continue")
            if not isinstance(following, dict):
                break
        return {"title": page["title"], "languages": [
            {"language": link.get("lang"), "name": link.get("langname"), "own_name": link.get("autonym"),
             "title": link.get("title"), "url": link.get("url")} for link in links]}


def _title(text):
    """Return a title as it is asked for: the last part of an address is one, too; | would be several."""
    match = re.match(r"^https?://[^/]+/wiki/([^?#]+)", text)
    if match:
        text = urllib.parse.unquote(match.group(1))
    text = text.replace("_", " ").strip()
    if not text or re.search(r"[|<>\[\]{}\n\r\0]", text):
        raise ToolError("\"%s\" cannot be a title: one of | < > [ ] { } or a line break is in it" % text[:100])
    return text


def _head(page):
    out = {"title": page["title"]}
    for key, name in (("redirected_from", "redirected_from"), ("description", "description"), ("fullurl", "url"),
                      ("pagelanguage", "language")):
        if page.get(key):
            out[name] = page[key]
    if "disambiguation" in (page.get("pageprops") or {}):
        out["note"] = "this page only lists what the title can mean"
    return out


def _plain(snippet):
    return " ".join(html.unescape(re.sub(r"<[^>]*>", "", str(snippet))).split())


def _sections(text):
    """Return [(level, heading, start, start of its text)]."""
    return [(len(m.group(1)), m.group(2).strip(), m.start(), m.end())
            for m in re.finditer(r"^(={2,6}) ?([^=\n](?:[^\n]*[^=\n])?) ?\1[ \t]*$", text, re.M)]


def _section(text, wanted):
    sections = _sections(text)
    for n, (level, name, start, _) in enumerate(sections):
        if name.lower() == wanted.strip().lower():
            ends = [s[2] for s in sections[n + 1:] if s[0] <= level]
            return text[start:ends[0] if ends else len(text)].strip()
    raise ToolError("there is no section \"%s\"; there are: %s"
                    % (wanted[:100], ", ".join(s[1] for s in sections)[:1000] or "none"))


def from_environment(env):
    """Return a Wikipedia with the user's settings. Raises ApiError."""
    language = env.get("WIKIPEDIA_LANGUAGE", "").strip() or "en"
    if not re.fullmatch(LANGUAGE, language):
        raise ApiError("answer", "WIKIPEDIA_LANGUAGE must be a code such as en or it")
    base = env.get("WIKIPEDIA_BASE_URL", "").strip()
    if base:
        base = api_client.base_url("WIKIPEDIA_BASE_URL", base, "")
    contact = env.get("WIKIPEDIA_CONTACT", "").strip()
    if any(not " " <= c <= "~" or c in "()" for c in contact):
        raise ApiError("answer", "WIKIPEDIA_CONTACT must be printable ASCII without brackets")
    agent = "skald-wikipedia/1.0 (%s) python-urllib" % (contact or "MCP connector run by a single user")
    return Wikipedia(api_client.Client(agent), language, base)


def dispatch(env):
    """Return the map from a tool's name to its function. Wrong settings are told by each tool."""
    try:
        wiki = from_environment(env)
    except ApiError as e:
        reason = str(e)

        def refuse(_args):
            raise ToolError(reason)
        return {tool["name"]: refuse for tool in TOOLS}
    return {tool["name"]: getattr(wiki, tool["name"]) for tool in TOOLS}


def main():
    return Server(INFO, TOOLS, dispatch(os.environ), INSTRUCTIONS).run()


if __name__ == "__main__":
    sys.exit(main())
