"""The one folder of the user's that files are read from and written to.

The same file stands in the Google connectors that need it; a test keeps the copies equal.
A name is a path below the folder; no part of it may be a link, "..", or absolute, and what
is read must be a plain file. What is written is new: a file that is there is never
replaced, and a half-written one never carries the final name.
"""

import errno
import os
import re
import secrets
import stat

from mcp_stdio import ToolError

MAX_NAMES = 1000  # of the form "name (2).pdf"
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_WALK = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)


class Folder:
    """The folder in the setting of that name; every method raises ToolError."""

    def __init__(self, path, setting):
        self._path, self._setting = (path or "").strip(), setting

    def root(self):
        """Return the folder's real path."""
        if not self._path:
            raise ToolError("no folder for files is set (%s), so no file can be read or saved" % self._setting)
        root = os.path.realpath(os.path.expanduser(self._path))
        if not os.path.isdir(root):
            raise ToolError("the folder for files (%s) does not exist" % self._setting)
        if root in _homes() or os.path.dirname(root) == root:
            raise ToolError("the folder for files (%s) must be a folder of its own, not a whole home or disk" % self._setting)
        return root

    def open(self, name):
        """Return (binary file, size, base name) of a file in the folder."""
        root = self.root()
        parts = _parts(root, name)
        try:
            fd = _descend(root, parts) if os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW") else _plain(root, parts)
        except OSError as e:
            raise ToolError("file \"%s\" cannot be read: %s" % (name[:200], _reason(e))) from None
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            os.close(fd)
            raise ToolError("\"%s\" is not a file" % name[:200])
        return os.fdopen(fd, "rb"), info.st_size, parts[-1]

    def save(self, name, fill, fallback="file"):
        """Make a new file of about that name; fill writes it. Returns the name that it got."""
        root = self.root()
        name = safe_name(name, fallback)
        part = os.path.join(root, ".part-" + secrets.token_hex(8))
        try:
            fd = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0), 0o600)
            try:
                with os.fdopen(fd, "w+b") as file:
                    fill(file)
                chosen = _claim(root, name)
                os.replace(part, os.path.join(root, chosen))
            except BaseException:
                os.unlink(part)
                raise
        except OSError as e:
            raise ToolError("\"%s\" cannot be written: %s" % (name, _reason(e))) from None
        return chosen


def _homes():
    out = [os.path.expanduser("~")]
    try:
        import pwd  # HOME may be another one for a connector
        out.append(pwd.getpwuid(os.getuid()).pw_dir)
    except (ImportError, KeyError, AttributeError):
        pass
    return [os.path.realpath(home) for home in out]


def _reason(error):
    if error.errno == errno.ELOOP:
        return "it is a link, which is not followed"
    return error.strerror or type(error).__name__


def _parts(root, name):
    name = name.replace("\\", "/") if os.name == "nt" else name
    if os.path.isabs(name) and name.startswith(root.replace("\\", "/") + "/"):
        name = name[len(root) + 1:]
    parts = name.split("/")
    if any(p in ("", ".", "..") or ":" in p and os.name == "nt" for p in parts) or any(ord(c) < 32 for c in name):
        raise ToolError("\"%s\" is not the name of a file inside the folder for files"
                        % "".join(c if c.isprintable() else "?" for c in name[:200]))
    return parts


def _descend(root, parts):
    """Open a path part by part, so that nothing on the way can be a link."""
    at = os.open(root, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    try:
        for part in parts[:-1]:
            below = os.open(part, _WALK, dir_fd=at)
            os.close(at)
            at = below
        return os.open(parts[-1], _READ, dir_fd=at)
    finally:
        os.close(at)


def _plain(root, parts):
    path = os.path.join(root, *parts)
    if os.path.normcase(os.path.realpath(path)) != os.path.normcase(path):
        raise OSError(errno.ELOOP, "it is a link, which is not followed")
    return os.open(path, _READ)


def safe_name(name, fallback):
    """Return a file name without path, control characters and names that some systems reserve."""
    name = re.sub(r"[\\/:*?\"<>|]", "_", "".join(c if c.isprintable() else "_" for c in name)).strip(" .")
    stem, dot, end = name.rpartition(".")
    if dot and len(end) <= 10:
        name = stem[:100] + dot + end
    name = name.encode("utf-8", "ignore")[:180].decode("utf-8", "ignore").strip(" .")
    if not name or re.match(r"(?i)^(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)", name):
        return "_" + name if name else fallback
    return name


def _claim(root, name):
    stem, end = os.path.splitext(name)
    for n in range(1, MAX_NAMES):
        chosen = name if n == 1 else "%s (%d)%s" % (stem, n, end)
        try:
            os.close(os.open(os.path.join(root, chosen), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            return chosen
        except FileExistsError:
            continue
    raise ToolError("there are too many files named \"%s\" already" % name)
