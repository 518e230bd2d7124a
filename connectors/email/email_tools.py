"""The tools of the email connector as tools/list gives them: names, schemas, hints."""


def _object(required, **properties):
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def _string(description, **more):
    return dict({"type": "string", "description": description, "maxLength": 1000}, **more)


def _boolean(description, default):
    return {"type": "boolean", "description": description, "default": default}


def _integer(description, low, high, default=None):
    schema = {"type": "integer", "description": description, "minimum": low, "maximum": high}
    if default is not None:
        schema["default"] = default
    return schema


def _strings(description, most=100, **more):
    return dict({"type": "array", "items": {"type": "string", "minLength": 1, "maxLength": 1000},
                 "maxItems": most, "description": description}, **more)


_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_FOLDER = _string("Folder name as list_folders gives it.", minLength=1, default="INBOX")
_UID = _integer("UID of the message in its folder.", 1, 4294967295)
_UIDS = {"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 4294967295}, "minItems": 1,
         "maxItems": 100, "description": "UIDs of the messages in their folder."}
_LIMIT = _integer("How many messages at most, newest first.", 1, 100, 20)
_BEFORE = _integer("Only messages with a lower UID; to go on where the last answer ended.", 1, 4294967295)
_BODY = {"type": "string", "description": "The message as plain text.", "maxLength": 1000000}
_HTML = {"type": "string", "description": "The same message as HTML, if it should also be sent so.",
         "maxLength": 1000000}
_FILES = _strings("Names of files in the attachments folder.", 20)
_MESSAGE = dict(
    to=_strings("Recipients, each as ada@example.org or Ada Lovelace <ada@example.org>."),
    cc=_strings("Recipients of a copy."), bcc=_strings("Recipients of a copy that the others do not see."),
    subject=_string("Subject line."), body=_BODY, html=_HTML, attachments=_FILES)


def _tool(name, title, description, schema, read=False, destructive=False, idempotent=False, external=True):
    return {"name": name, "title": title, "description": description, "inputSchema": schema,
            "annotations": {"title": title, "readOnlyHint": read, "destructiveHint": destructive,
                            "idempotentHint": idempotent or read, "openWorldHint": external}}


TOOLS = [
    _tool("list_folders", "List Folders",
          "Lists the folders of the mailbox with their special use (inbox, sent, trash, drafts).",
          _object((), counts=_boolean("Also count all and unread messages of each folder (slower).", False)), read=True),
    _tool("create_folder", "Create Folder", "Creates a folder in the mailbox.",
          _object(("folder",), folder=_string("Name of the new folder; use the separator that list_folders gives "
                                              "for a folder inside another.", minLength=1))),
    _tool("list_recent", "List Recent Messages",
          "Lists the newest messages of a folder: UID, sender, subject, date, size, flags.",
          _object((), folder=_FOLDER, limit=_LIMIT, unread_only=_boolean("Only unread messages.", False),
                  before_uid=_BEFORE), read=True),
    _tool("search_messages", "Search Messages",
          "Searches a folder. All conditions that are given must hold; newest messages first.",
          _object((), folder=_FOLDER, text=_string("Words anywhere in the message."),
                  subject=_string("Words in the subject."), body=_string("Words in the body."),
                  **{"from": _string("Part of the sender's name or address.")},
                  to=_string("Part of a recipient's name or address."),
                  since=_string("On or after this day (YYYY-MM-DD).", pattern=_DATE),
                  before=_string("Before this day (YYYY-MM-DD).", pattern=_DATE),
                  unread={"type": "boolean", "description": "true: only unread, false: only read messages."},
                  flagged={"type": "boolean", "description": "true: only flagged, false: only unflagged messages."},
                  limit=_LIMIT, before_uid=_BEFORE), read=True),
    _tool("get_message", "Read Message",
          "Reads one message: headers, text, list of attachments. A long text is given in parts.",
          _object(("uid",), folder=_FOLDER, uid=_UID,
                  format=_string("text, or html for the HTML part as it was sent.", enum=["text", "html"], default="text"),
                  start=_integer("Character of the text to start at.", 0, 100000000, 0),
                  max_chars=_integer("How many characters of the text at most.", 100, 200000, 20000),
                  mark_read=_boolean("Mark the message as read.", False)), read=False, idempotent=True),
    _tool("save_attachment", "Save Attachment",
          "Saves one attachment of a message into the attachments folder; never overwrites a file.",
          _object(("uid", "index"), folder=_FOLDER, uid=_UID,
                  index=_integer("Number of the attachment as get_message gives it, from 0.", 0, 999),
                  filename=_string("Another file name to save it under.", minLength=1))),
    _tool("send_email", "Send Email", "Sends a message at once.",
          _object(("to", "subject", "body"), **_MESSAGE), destructive=True),
    _tool("reply", "Reply to Message", "Answers a message, in its thread, quoting it.",
          _object(("uid", "body"), folder=_FOLDER, uid=_UID, body=_BODY,
                  reply_all=_boolean("Also to the other recipients.", False),
                  quote=_boolean("Quote the original below the answer.", True), attachments=_FILES), destructive=True),
    _tool("save_draft", "Save Draft", "Saves a message in the drafts folder without sending it.",
          _object((), **_MESSAGE)),
    _tool("move_message", "Move Message", "Moves messages to another folder, which must exist.",
          _object(("uids", "destination"), folder=_FOLDER, uids=_UIDS,
                  destination=_string("Folder to move the messages to.", minLength=1))),
    _tool("mark_message", "Mark Message", "Marks messages as read or unread, flagged or not.",
          _object(("uids", "mark"), folder=_FOLDER, uids=_UIDS,
                  mark=_string("What to mark them as.", enum=["read", "unread", "flagged", "unflagged"])), idempotent=True),
    _tool("delete_message", "Move Message to Trash",
          "Moves messages to the trash folder. Nothing is deleted for good.",
          _object(("uids",), folder=_FOLDER, uids=_UIDS), destructive=True),
]
