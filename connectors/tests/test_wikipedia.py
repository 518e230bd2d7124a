"""The wikipedia connector against a double of a MediaWiki action API on loopback.

The double answers in the shapes of format version 2: query.pages is a list, missing pages
carry "missing": true, errors come with status 200.
"""

import unittest

from loopback import Site, data, page
from stdio_client import ProtocolTests, ServerTest

TEXT = """Tea is a drink.

== History ==
It is old.

=== China ===
Very old.

== See also ==
Coffee""".replace("\n=", "\n\n=")
PAGES = {
    "Tea": {"pageid": 1, "ns": 0, "title": "Tea", "extract": TEXT, "description": "hot drink", "pagelanguage": "en",
            "fullurl": "https://en.wikipedia.org/wiki/Tea"},
    "Mercury": {"pageid": 2, "ns": 0, "title": "Mercury", "extract": "Mercury may be:", "pageprops": {"disambiguation": ""}},
    "Long": {"pageid": 3, "ns": 0, "title": "Long", "extract": "é" * 300000},
    "Empty": {"pageid": 4, "ns": 0, "title": "Empty", "extract": ""},
}
REDIRECTS = {"Chai": "Tea"}


def api(query):
    if query.get("format") != "json" or query.get("formatversion") != "2":
        return page("<html>help</html>")(query)
    if query.get("list") == "search":
        if query["srsearch"] == "insource:/[/":
            return data({"error": {"code": "cirrussearch-regex-syntax-error", "info": "Regex syntax error", "docref": ""}})
        hits = [{"ns": 0, "title": t, "pageid": p["pageid"], "size": 10, "wordcount": 4,
                 "snippet": "a <span class=\"searchmatch\">Tea</span> &amp; cake", "timestamp": "2026-01-01T00:00:00Z"}
                for t, p in PAGES.items() if query["srsearch"].lower() in t.lower()]
        info = {"totalhits": len(hits)}
        if not hits:
            info["suggestion"] = "tea"
        return data({"batchcomplete": True, "query": {"searchinfo": info, "search": hits[:int(query["srlimit"])]}})
    title = query["titles"]
    out = {"batchcomplete": True, "query": {}}
    if title in REDIRECTS:
        out["query"]["redirects"] = [{"from": title, "to": REDIRECTS[title]}]
        title = REDIRECTS[title]
    found = dict(PAGES.get(title) or {"ns": 0, "title": title, "missing": True})
    if title == ":::":
        found = {"title": title, "invalidreason": "The requested page title is empty.", "invalid": True}
    if query["prop"] == "langlinks" and not found.get("missing"):
        if "llcontinue" in query:
            found["langlinks"] = [{"lang": "it", "url": "https://it.wikipedia.org/wiki/T%C3%A8", "langname": "Italian",
                                   "autonym": "italiano", "title": "Tè"}]
        else:
            found["langlinks"] = [{"lang": "de", "url": "https://de.wikipedia.org/wiki/Tee", "langname": "German",
                                   "autonym": "Deutsch", "title": "Tee"}]
            out["continue"] = {"llcontinue": "1|it", "continue": "||"}
    out["query"]["pages"] = [found]
    return data(out)


class Wikipedia(ProtocolTests, ServerTest):
    connector, script = "wikipedia", "wikipedia_mcp_server.py"

    def setUp(self):
        self.routes = {"/w/api.php": api}
        self.site = Site(self.routes)
        self.addCleanup(self.site.close)

    def environment(self):
        return {"WIKIPEDIA_BASE_URL": self.site.url}

    def test_search(self):
        client = self.start()
        found = self.ok(client, "search", query="tea", limit=5)
        self.assertEqual(found["pages"], [{"title": "Tea", "snippet": "a Tea & cake", "words": 4,
                                           "changed": "2026-01-01T00:00:00Z"}])
        self.assertEqual(self.ok(client, "search", query="xyz")["did_you_mean"], "tea")
        self.fails(client, "search", "the site refused: Regex syntax error", query="insource:/[/")
        self.fails(client, "search", "limit must be at most 50", query="tea", limit=51)

    def test_summary(self):
        client = self.start()
        found = self.ok(client, "get_summary", title="Chai")
        self.assertEqual((found["title"], found["redirected_from"], found["description"]), ("Tea", "Chai", "hot drink"))
        self.assertIn("only lists", self.ok(client, "get_summary", title="Mercury")["note"])
        self.assertIn("no introduction", self.ok(client, "get_summary", title="Empty")["note"])
        self.assertEqual(self.ok(client, "get_summary", title="https://en.wikipedia.org/wiki/Tea#x")["title"], "Tea")
        self.fails(client, "get_summary", 'there is no page "Nothing"', title="Nothing")
        self.fails(client, "get_summary", "cannot be a title: The requested", title=":::")
        self.fails(client, "get_summary", "cannot be a title", title="a|b")

    def test_page(self):
        client = self.start()
        found = self.ok(client, "get_page", title="Tea")
        self.assertEqual(found["sections"], ["History", "China", "See also"])
        self.assertTrue(found["text"].startswith("Tea is a drink."))
        found = self.ok(client, "get_page", title="Tea", section="history")
        self.assertIn("Very old.", found["text"])
        self.assertNotIn("Coffee", found["text"])
        self.fails(client, "get_page", "there are: History, China, See also", title="Tea", section="Taste")

    def test_long_page_in_parts(self):
        client = self.start()
        found = self.ok(client, "get_page", title="Long", max_chars=200000)
        self.assertEqual((len(found["text"]), found["text_range"]["of"]), (200000, 300000))
        found = self.ok(client, "get_page", title="Long", start=299990)
        self.assertEqual(found["text"], "é" * 10)
        self.fails(client, "get_page", "behind the end", title="Long", start=300000)

    def test_languages(self):
        client = self.start()
        found = self.ok(client, "list_languages", title="Tea")["languages"]
        self.assertEqual([(x["language"], x["title"]) for x in found], [("de", "Tee"), ("it", "Tè")])
        self.fails(client, "list_languages", "there is no page", title="Nothing")

    def test_language_is_checked_before_it_becomes_a_host(self):
        client = self.start({})
        for language in ("evil.example/", "EN", "a", "en.evil", "en\n"):
            self.fails(client, "get_summary", "language must match", title="Tea", language=language)

    def test_odd_answers(self):
        client = self.start()
        for route, words in ((page("<html>portal"), "a web page instead of data"), (lambda _q: data([1]), "unexpected"),
                             (lambda _q: data({}), "there is no page"), (page("", status=403), "answered 403")):
            self.routes["/w/api.php"] = route
            self.fails(client, "get_summary", words, title="Tea")

    def test_contact_in_the_user_agent(self):
        self.ok(self.start(dict(self.environment(), WIKIPEDIA_CONTACT="ada@example.org")), "search", query="tea")
        self.assertIn("(ada@example.org)", self.site.requests[-1][1]["User-Agent"])
        self.fails(self.start(dict(self.environment(), WIKIPEDIA_CONTACT="a\r\nX: y")), "search", "WIKIPEDIA_CONTACT", query="tea")

    def test_unusable_settings(self):
        self.fails(self.start({"WIKIPEDIA_BASE_URL": "x"}), "search", "WIKIPEDIA_BASE_URL must be", query="tea")
        self.fails(self.start({"WIKIPEDIA_LANGUAGE": "x/y"}), "search", "WIKIPEDIA_LANGUAGE must be", query="tea")

    def test_verify(self):
        code, result, _ = self.run_verify(self.environment())
        self.assertEqual((code, result["ok"], result["message"]), (0, True, self.site.url + " answered"))
        code, result, _ = self.run_verify({"WIKIPEDIA_BASE_URL": "http://127.0.0.1:1"})
        self.assertEqual((code, result["ok"], result["message"]), (1, False, "127.0.0.1 refused the connection"))
        code, result, _ = self.run_verify({"WIKIPEDIA_BASE_URL": "https://wiki.invalid"})
        self.assertIn("there is no host wiki.invalid", result["message"])


if __name__ == "__main__":
    unittest.main()
