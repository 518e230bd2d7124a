"""The tools of the gmail connector as tools/list gives them: names, schemas, hints."""


def _object(required, **properties):
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def _string(description, **more):
    return dict({"type": "string", "description": description, "maxLength": 2000}, **more)


def _boolean(description, default):
    return {"type": "boolean", "description": description, "default": default}


def _integer(description, low, high, default=None):
    schema = {"type": "integer", "description": description, "minimum": low, "maximum": high}
    return schema if default is None else dict(schema, default=default)


def _strings(description, most=100, **more):
    return dict({"type": "array", "items": {"type": "string", "minLength": 1, "maxLength": 1000},
                 "maxItems": most, "description": description}, **more)


_PATTERN = "^[A-Za-z0-9_-]{1,100}$"
_IDS = {"type": "array", "items": {"type": "string", "pattern": _PATTERN}, "minItems": 1, "maxItems": 50,
        "description": "Ids of the messages."}
_LIMIT = _integer("How many at most, newest first.", 1, 50, 20)
_PAGE = _string("next_page of the last answer, to go on where it ended.", pattern="^[!-~]{1,1000}$")
_BODY = {"type": "string", "description": "The message as plain text.", "maxLength": 1000000}
_FILES = _strings("Names of files in the folder for files; 25 MiB in all.", 20)
_MESSAGE = dict(
    to=_strings("Recipients, each as ada@example.org or Ada Lovelace <ada@example.org>."),
    cc=_strings("Recipients of a copy."), bcc=_strings("Recipients of a copy that the others do not see."),
    subject=_string("Subject line."), body=_BODY,
    html={"type": "string", "description": "The same message as HTML, if it should also be sent so.", "maxLength": 1000000},
    attachments=_FILES,
    sender=_string("Another sender address; it must be set up in Gmail under \"Send mail as\"."))
_START = _integer("Character of the text to start at.", 0, 100000000, 0)


def _id(description):
    return _string(description, pattern=_PATTERN)


def _tool(name, title, description, schema, read=False, destructive=False, idempotent=False):
    return {"name": name, "title": title, "description": description, "inputSchema": schema,
            "annotations": {"title": title, "readOnlyHint": read, "destructiveHint": destructive,
                            "idempotentHint": idempotent or read, "openWorldHint": True}}


TOOLS = [
    _tool("get_profile", "Show Account", "Tells which Gmail account is signed in and how many messages it holds.",
          _object(()), read=True),
    _tool("list_labels", "List Labels", "Lists the labels of the mailbox: Gmail's own, such as INBOX, and the user's.",
          _object((), counts=_boolean("Also count all and unread messages of each label (slower).", False)), read=True),
    _tool("create_label", "Create Label", "Creates a label.",
          _object(("name",), name=_string("Name; a slash puts it below another label.", minLength=1, maxLength=225))),
    _tool("update_label", "Rename Label", "Renames a label of the user's.",
          _object(("label", "name"), label=_string("Name or id of the label.", minLength=1),
                  name=_string("The new name.", minLength=1, maxLength=225)), idempotent=True),
    _tool("delete_label", "Delete Label", "Deletes a label of the user's for good; its messages stay.",
          _object(("label",), label=_string("Name or id of the label.", minLength=1)), destructive=True),
    _tool("list_messages", "List Messages", "Lists the newest messages of a label: id, thread, sender, subject, date, labels.",
          _object((), label=_string("Name or id of the label.", minLength=1, default="INBOX"),
                  unread_only=_boolean("Only unread messages.", False), limit=_LIMIT, page=_PAGE), read=True),
    _tool("search_messages", "Search Messages", "Searches the mailbox with Gmail's own search words; newest messages first.",
          _object(("query",), query=_string("As in Gmail's search box: from:ada subject:report has:attachment after:2026/01/31 "
                                            "is:unread \"exact words\".", minLength=1),
                  include_spam_trash=_boolean("Also in spam and trash.", False), limit=_LIMIT, page=_PAGE), read=True),
    _tool("get_message", "Read Message", "Reads one message: headers, text, list of attachments. A long text is given in parts.",
          _object(("id",), id=_id("Id of the message."),
                  format=_string("text, or html for the HTML part as it was sent.", enum=["text", "html"], default="text"),
                  start=_START, max_chars=_integer("How many characters of the text at most.", 100, 200000, 20000),
                  mark_read=_boolean("Mark the message as read.", False)), idempotent=True),
    _tool("get_thread", "Read Thread", "Reads the messages of a thread, oldest first, each cut to a number of characters.",
          _object(("id",), id=_id("Id of the thread."), max_chars=_integer("Characters of each message at most.", 100, 50000, 4000),
                  last=_integer("Only so many of the newest messages.", 1, 100, 25)), read=True),
    _tool("modify_messages", "Change Labels", "Adds and removes labels. Removing UNREAD marks as read, removing INBOX archives, "
          "adding STARRED flags.",
          _object(("ids",), ids=_IDS, add=_strings("Names or ids of labels to add.", 50),
                  remove=_strings("Names or ids of labels to remove.", 50)), idempotent=True),
    _tool("trash_messages", "Move Messages to Trash", "Moves messages to the trash, where Gmail keeps them for 30 days.",
          _object(("ids",), ids=_IDS), destructive=True, idempotent=True),
    _tool("untrash_messages", "Take Messages out of Trash", "Takes messages out of the trash.",
          _object(("ids",), ids=_IDS), idempotent=True),
    _tool("save_attachment", "Save Attachment", "Saves one attachment into the folder for files; never overwrites a file.",
          _object(("id", "index"), id=_id("Id of the message."),
                  index=_integer("Number of the attachment as get_message gives it, from 0.", 0, 999),
                  filename=_string("Another file name to save it under.", minLength=1, maxLength=200))),
    _tool("send_email", "Send Email", "Sends a message at once.", _object(("to", "subject", "body"), **_MESSAGE), destructive=True),
    _tool("reply", "Reply to Message", "Answers a message, in its thread, quoting it.",
          _object(("id", "body"), id=_id("Id of the message that is answered."), body=_BODY,
                  reply_all=_boolean("Also to the other recipients.", False),
                  quote=_boolean("Quote the original below the answer.", True), attachments=_FILES,
                  draft=_boolean("Save the answer as a draft instead of sending it.", False)), destructive=True),
    _tool("list_drafts", "List Drafts", "Lists the drafts: id, recipients, subject.",
          _object((), query=_string("Only drafts that Gmail's search finds by these words."), limit=_LIMIT, page=_PAGE), read=True),
    _tool("create_draft", "Save Draft", "Saves a message as a draft without sending it.", _object((), **_MESSAGE)),
    _tool("update_draft", "Replace Draft", "Puts a new message in the place of a draft; what is not given is empty.",
          _object(("id",), id=_id("Id of the draft."), **_MESSAGE), destructive=True, idempotent=True),
    _tool("send_draft", "Send Draft", "Sends a draft as it is.", _object(("id",), id=_id("Id of the draft.")), destructive=True),
    _tool("delete_draft", "Delete Draft", "Deletes a draft for good.", _object(("id",), id=_id("Id of the draft.")),
          destructive=True),
]
