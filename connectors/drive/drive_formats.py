"""Google's own file formats: what they are called, and what they can be exported to.

https://developers.google.com/drive/api/guides/ref-export-formats
"""

APPS = "application/vnd.google-apps."
OFFICE = "application/vnd.openxmlformats-officedocument."
OPEN = "application/vnd.oasis.opendocument."

# The word of the tools and the condition on mimeType that it stands for.
KINDS = {
    "folder": "mimeType = '%sfolder'" % APPS,
    "document": "mimeType = '%sdocument'" % APPS,
    "spreadsheet": "mimeType = '%sspreadsheet'" % APPS,
    "presentation": "mimeType = '%spresentation'" % APPS,
    "form": "mimeType = '%sform'" % APPS,
    "drawing": "mimeType = '%sdrawing'" % APPS,
    "pdf": "mimeType = 'application/pdf'",
    "image": "mimeType contains 'image/'",
    "video": "mimeType contains 'video/'",
    "audio": "mimeType contains 'audio/'",
    "text": "mimeType contains 'text/'",
    "file": "mimeType != '%sfolder'" % APPS,
}

EXPORTS = {
    APPS + "document": {"docx": OFFICE + "wordprocessingml.document", "odt": OPEN + "text", "rtf": "application/rtf",
                        "pdf": "application/pdf", "txt": "text/plain", "html": "text/html", "epub": "application/epub+zip",
                        "md": "text/markdown"},
    APPS + "spreadsheet": {"xlsx": OFFICE + "spreadsheetml.sheet", "ods": OPEN + "spreadsheet", "pdf": "application/pdf",
                           "csv": "text/csv", "tsv": "text/tab-separated-values"},
    APPS + "presentation": {"pptx": OFFICE + "presentationml.presentation", "odp": OPEN + "presentation",
                            "pdf": "application/pdf", "txt": "text/plain"},
    APPS + "drawing": {"pdf": "application/pdf", "png": "image/png", "jpg": "image/jpeg", "svg": "image/svg+xml"},
}

READABLE = {APPS + "document": "text/plain", APPS + "spreadsheet": "text/csv", APPS + "presentation": "text/plain"}

# What an uploaded file can become.
CONVERTS = {
    ".docx": "document", ".doc": "document", ".odt": "document", ".rtf": "document", ".txt": "document", ".html": "document",
    ".md": "document", ".xlsx": "spreadsheet", ".xls": "spreadsheet", ".ods": "spreadsheet", ".csv": "spreadsheet",
    ".tsv": "spreadsheet", ".pptx": "presentation", ".ppt": "presentation", ".odp": "presentation",
}


def textual(kind):
    """Say whether a media type is text that can be shown."""
    return kind.startswith("text/") or kind.endswith(("+json", "+xml")) or kind in (
        "application/json", "application/xml", "application/javascript", "application/x-sh", "application/x-yaml", "application/sql",
        "application/toml", "application/x-ndjson", "application/x-tex", "application/rtf")


def short(kind):
    """Return the word for one of Google's formats, or the media type as it is."""
    return kind[len(APPS):] if kind.startswith(APPS) else kind
