"""HTML to Markdown, or to plain text, by the standard library's tolerant parser.

What a reader does not need is left out (scripts, styles, forms, navigation), and when the
page marks its main part, only that is kept. The output is for reading, not for turning
back into HTML.
"""

import re
import urllib.parse
from html.parser import HTMLParser

SILENT = {"script", "style", "noscript", "template", "svg", "head", "nav", "aside", "form", "button", "select",
          "iframe", "object", "canvas", "dialog", "math"}
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
BLOCKS = {"p", "div", "section", "article", "main", "header", "footer", "figure", "figcaption", "dl", "dd", "dt",
          "address", "details", "summary", "fieldset", "center"}
HEADINGS = {"h%d" % n: n for n in range(1, 7)}
MARKS = {"strong": "**", "b": "**", "em": "*", "i": "*", "code": "`"}
# Marks inside the output until tidy() turns them into white space. Control characters of
# the page itself are dropped, so these are ours alone.
SPACE, PARAGRAPH, LINE, PRE, END_PRE, QUOTE = "\0", "\x01", "\x02", "\x03", "\x04", "\x05"
MAX_DEPTH = 200  # of open elements that are kept track of; deeper nesting is an attack or a fault


class _Builder(HTMLParser):
    def __init__(self, base, markdown):
        super().__init__(convert_charrefs=True)
        self.base, self.markdown = base, markdown
        self.out = []            # finished pieces, with the marks above
        self.open = []           # open elements that matter
        self.silent = 0
        self.lists = []          # "ul", or the next number of an "ol"
        self.quote = 0
        self.pre = 0
        self.title, self.in_title = [], False
        self.links, self.link, self.link_at = [], None, 0
        self.row, self.rows, self.cell = None, None, None
        self.main = None         # (start, end) in out of the main part

    # -- pieces

    def put(self, text):
        (self.cell if self.cell is not None else self.out).append(text)

    def block(self, gap=PARAGRAPH):
        self.put(" " if self.cell is not None else gap + (QUOTE if self.quote and self.markdown else ""))

    def handle_data(self, data):
        if self.in_title:
            self.title.append(data)
        elif not self.silent:
            data = re.sub("[\0-\x08\x0e-\x1f\x7f]", "", data)
            self.put(data if self.pre else re.sub(r"[ \t\r\n\f\v]+", " ", data))

    # -- elements

    def handle_starttag(self, tag, attrs):
        if tag == "title" and not self.title:
            self.in_title = True
            return
        if tag in SILENT:
            if len(self.open) < MAX_DEPTH:
                self.open.append(tag)
                self.silent += 1
            return
        if self.silent:
            if tag == "body":  # an unclosed head ends here
                self.silent, self.open = 0, []
            return
        attrs = {k: v or "" for k, v in attrs}
        handler = getattr(self, "start_" + tag, None)
        if handler:
            handler(attrs)
        elif tag in HEADINGS:
            self.block()
            if self.markdown:
                self.put("#" * HEADINGS[tag] + " ")
        elif tag in BLOCKS:
            self.block()
            if tag in ("main", "article") and self.main is None and self.cell is None:
                self.main = (len(self.out), None)
                self.open.append(tag)
        elif self.markdown and tag in MARKS and not self.pre:
            self.put(MARKS[tag])

    def handle_endtag(self, tag):
        if tag == "title":
            self.in_title = False
        if tag in SILENT:
            if tag in self.open:
                while self.open:
                    last = self.open.pop()
                    self.silent -= last in SILENT
                    if last == tag:
                        break
            return
        if self.silent:
            return
        handler = getattr(self, "end_" + tag, None)
        if handler:
            handler()
        elif tag in HEADINGS:
            self.block()
        elif tag in BLOCKS:
            if tag in self.open and self.main and self.main[1] is None:
                self.open.remove(tag)
                self.main = (self.main[0], len(self.out))
            self.block()
        elif self.markdown and tag in MARKS and not self.pre:
            pieces = self.cell if self.cell is not None else self.out
            if pieces and pieces[-1] == MARKS[tag]:
                pieces.pop()  # nothing was in it
            else:
                self.put(MARKS[tag])

    def start_br(self, _attrs):
        self.block("\n")

    def start_hr(self, _attrs):
        self.block()
        self.put("---" if self.markdown else "")
        self.block()

    def start_a(self, attrs):
        self.end_a()
        self.link = absolute(self.base, attrs.get("href", ""))
        self.link_at = len(self.cell if self.cell is not None else self.out)

    def end_a(self):
        if self.link is None:
            return
        target, self.link = self.link, None
        pieces = self.cell if self.cell is not None else self.out
        text = " ".join("".join(pieces[self.link_at:]).split())
        if target:
            self.links.append((text, target))
        if target and text and self.markdown and "#" not in text[:1]:
            del pieces[self.link_at:]
            pieces.append("[%s](%s)" % (text, target))

    def start_img(self, attrs):
        if attrs.get("alt", "").strip():
            alt = " ".join(attrs["alt"].split())[:200]
            self.put("![%s](%s)" % (alt, absolute(self.base, attrs.get("src", ""))) if self.markdown else "[%s]" % alt)

    def start_ul(self, _attrs):
        self.block(LINE if self.lists else PARAGRAPH)
        self.lists.append("ul")

    def start_ol(self, _attrs):
        self.block(LINE if self.lists else PARAGRAPH)
        self.lists.append(1)

    def end_ul(self):
        if self.lists:
            self.lists.pop()
        self.block(LINE if self.lists else PARAGRAPH)

    end_ol = end_ul

    def start_li(self, _attrs):
        self.block(LINE)
        mark = "- "
        if self.lists and self.lists[-1] != "ul":
            mark = "%d. " % self.lists[-1]
            self.lists[-1] += 1
        self.put(SPACE * (2 * min(20, max(0, len(self.lists) - 1))) + mark)

    def start_pre(self, _attrs):
        self.block()
        if not self.pre:
            self.put(("```\n" if self.markdown else "") + PRE)
        self.pre += 1

    def end_pre(self):
        if self.pre:
            self.pre -= 1
            if not self.pre:
                self.put(END_PRE + ("\n```" if self.markdown else ""))
            self.block()

    def start_blockquote(self, _attrs):
        self.quote += 1
        self.block()

    def end_blockquote(self):
        self.quote = max(0, self.quote - 1)
        self.block()

    # -- tables: rows of cells, Markdown's with a rule after the first

    def start_table(self, _attrs):
        self.end_table()
        self.block()
        self.rows = []

    def start_tr(self, _attrs):
        self.end_tr()
        self.row = []

    def start_td(self, _attrs):
        self.end_td()
        self.cell = []

    start_th = start_td

    def end_td(self):
        if self.cell is not None:
            text = " ".join(re.sub("[\0-\x08]", " ", "".join(self.cell)).split())
            self.cell = None
            if self.row is None:
                self.row = []
            self.row.append(text.replace("|", "\\|") if self.markdown else text)

    end_th = end_td

    def end_tr(self):
        self.end_td()
        if self.row and any(self.row) and self.rows is not None:
            self.rows.append(self.row)
        elif self.row and self.rows is None:
            self.out.append(" ".join(self.row))
        self.row = None

    def end_table(self):
        self.end_tr()
        rows, self.rows = self.rows or [], None
        for n, row in enumerate(rows):
            if self.markdown:
                self.out.append("\n| %s |" % " | ".join(row))
                if n == 0 and len(rows) > 1:
                    self.out.append("\n|%s" % (" --- |" * len(row)))
            else:
                self.out.append("\n" + "\t".join(row))
        if rows:
            self.block()

    def finish(self):
        self.close()
        self.end_a()
        self.out.append(END_PRE if self.pre else "")
        self.end_table()
        pieces = self.out
        if self.main:
            chosen = pieces[self.main[0]:self.main[1]]
            if len("".join(chosen).strip()) > 200:  # a main part without content is a script's
                pieces = chosen
        return tidy("".join(pieces))


def tidy(text):
    """Turn the marks into white space; collapse what is more than one empty line."""
    out = []
    for n, part in enumerate(re.split("%s(.*?)%s" % (PRE, END_PRE), text, flags=re.S)):
        if n % 2:
            out.append(part.strip("\r\n"))
        else:
            part = re.sub("[ \t\n\x01\x02\x05]*[\n\x01\x02][ \t\n\x01\x02\x05]*", _gap, part)
            out.append(re.sub(" {2,}", " ", part.replace(QUOTE, "")))
    return "".join(out).replace(SPACE, " ").replace("\xa0", " ").strip().replace(PRE, "").replace(END_PRE, "")


def _gap(match):
    run = match.group(0)
    last = max(run.rfind(mark) for mark in "\n\x01\x02")
    gap = "\n\n" if PARAGRAPH in run or run.count("\n") > 1 else "\n"
    return gap + ("> " if QUOTE in run[last:] else "")


def absolute(base, href):
    """Return href as an absolute http, https or mailto address; empty for anything else."""
    try:
        url = urllib.parse.urljoin(base, href.strip())
    except ValueError:
        return ""
    return url.replace(" ", "%20").replace(")", "%29") if url.startswith(("http://", "https://", "mailto:")) else ""


def _build(html, base, markdown):
    builder = _Builder(base, markdown)
    try:
        builder.feed(html)
    except (AssertionError, ValueError, RecursionError):
        pass  # what was read so far is better than nothing
    text = builder.finish()
    return " ".join("".join(builder.title).split())[:300], text, builder.links


def to_markdown(html, base):
    """Return (title, Markdown)."""
    return _build(html, base, True)[:2]


def to_text(html, base):
    """Return (title, plain text)."""
    return _build(html, base, False)[:2]


def links(html, base):
    """Return [(text, absolute address)] of the links outside navigation, in document order."""
    return _build(html, base, False)[2]
