"""The tools of the drive connector as tools/list gives them: names, schemas, hints."""

from drive_formats import EXPORTS, KINDS


def _object(required, **properties):
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def _string(description, **more):
    return dict({"type": "string", "description": description, "maxLength": 1000}, **more)


def _boolean(description, default=None):
    schema = {"type": "boolean", "description": description}
    return schema if default is None else dict(schema, default=default)


def _integer(description, low, high, default):
    return {"type": "integer", "description": description, "minimum": low, "maximum": high, "default": default}


_PATTERN = "^[A-Za-z0-9_-]{1,200}$"
_ID = _string("Id of the file or folder.", pattern=_PATTERN)
_FOLDER = _string("Id of the folder; root is the top of My Drive.", pattern=_PATTERN, default="root")
_LIMIT = _integer("How many at most.", 1, 100, 30)
_PAGE = _string("next_page of the last answer, to go on where it ended.", pattern="^[!-~]{1,4000}$", maxLength=4000)
_SAVE = _string("File name to save it under.", minLength=1, maxLength=200)
_FORMATS = sorted({name for formats in EXPORTS.values() for name in formats})


def _tool(name, title, description, schema, read=False, destructive=False, idempotent=False):
    return {"name": name, "title": title, "description": description, "inputSchema": schema,
            "annotations": {"title": title, "readOnlyHint": read, "destructiveHint": destructive,
                            "idempotentHint": idempotent or read, "openWorldHint": True}}


TOOLS = [
    _tool("get_account", "Show Account", "Tells which Google account is signed in and how much of its storage is used.",
          _object(()), read=True),
    _tool("search_files", "Search Files", "Searches Drive. All conditions that are given must hold.",
          _object((), text=_string("Words in the content or the name.", minLength=1), name=_string("Part of the name.", minLength=1),
                  kind=_string("What it is.", enum=sorted(KINDS)),
                  folder=_string("Only directly in the folder of this id.", pattern=_PATTERN),
                  modified_after=_string("Changed after this day or time (UTC).",
                                         pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}:[0-9]{2})?$"),
                  shared_with_me=_boolean("Only what others have shared."), starred=_boolean("Only what has a star."),
                  trashed=_boolean("In the trash instead of outside of it.", False), limit=_LIMIT, page=_PAGE), read=True),
    _tool("list_folder", "List Folder", "Lists what is in a folder, folders first.",
          _object((), folder=_FOLDER, limit=_LIMIT, page=_PAGE), read=True),
    _tool("get_file", "Show File", "Tells everything about a file or folder but its content: type, size, owner, times, who has access.",
          _object(("id",), id=_ID), read=True),
    _tool("read_file", "Read File", "Gives the text of a file: Google documents and presentations as plain text, the first sheet of a "
          "spreadsheet as CSV, other text files as they are. A long text is given in parts.",
          _object(("id",), id=_ID, start=_integer("Character of the text to start at.", 0, 100000000, 0),
                  max_chars=_integer("How many characters at most.", 100, 200000, 20000)), read=True),
    _tool("download_file", "Download File", "Saves a file as it is into the folder for files; never overwrites a file. Google's own formats "
          "need export_file.", _object(("id",), id=_ID, filename=_SAVE)),
    _tool("export_file", "Export Google File", "Saves a document, spreadsheet, presentation or drawing of Google's in another format into "
          "the folder for files; never overwrites a file. Google exports at most 10 MB.",
          _object(("id", "format"), id=_ID, format=_string("The format.", enum=_FORMATS), filename=_SAVE)),
    _tool("upload_file", "Upload File", "Puts a file of the folder for files into Drive, as a new file or as the new content of one.",
          _object(("file",), file=_string("Name of the file in the folder for files.", minLength=1), folder=_FOLDER,
                  name=_string("Another name for it in Drive.", minLength=1, maxLength=500),
                  replace=_string("Id of a file whose content it replaces; Drive keeps the old one for a while.", pattern=_PATTERN),
                  convert=_boolean("Turn an office, text or CSV file into a Google document, spreadsheet or presentation.", False)),
          destructive=True),
    _tool("create_folder", "Create Folder", "Creates a folder.",
          _object(("name",), name=_string("Its name.", minLength=1, maxLength=500), folder=_FOLDER)),
    _tool("rename_file", "Rename File", "Gives a file or folder another name.",
          _object(("id", "name"), id=_ID, name=_string("The new name.", minLength=1, maxLength=500)), idempotent=True),
    _tool("move_file", "Move File", "Moves a file or folder into another folder.",
          _object(("id", "folder"), id=_ID, folder=dict(_FOLDER)), idempotent=True),
    _tool("share_file", "Share File", "Gives somebody access to a file or folder; with anyone, everybody who has the link.",
          _object(("id", "with"), id=_ID, **{"with": _string("An email address, a domain such as example.org, or anyone.",
                                                             pattern="^(anyone|([^\\s@<>,;]+@)?[A-Za-z0-9.-]+\\.[A-Za-z]{2,})$")},
                  role=_string("What it allows.", enum=["reader", "commenter", "writer"], default="reader"),
                  group=_boolean("The address is that of a group.", False),
                  notify=_boolean("Google tells the person by email.", True), message=_string("Text for that email.", maxLength=2000)),
          destructive=True),
    _tool("unshare_file", "Stop Sharing File", "Takes somebody's access away again.",
          _object(("id", "with"), id=_ID, **{"with": _string("The email address, the domain, or anyone.", minLength=1)}),
          destructive=True, idempotent=True),
    _tool("trash_file", "Move File to Trash", "Moves a file or folder to the trash, where Google keeps it for 30 days.",
          _object(("id",), id=_ID), destructive=True, idempotent=True),
    _tool("untrash_file", "Take File out of Trash", "Takes a file or folder out of the trash.", _object(("id",), id=_ID), idempotent=True),
]
