"""What the email suites share: the running mail servers, a mailbox to look into, a proxy."""

import imaplib
import socket
import threading
import time
import unittest

from mailserver import USERS, Missing, Servers
from stdio_client import ServerTest

ADA, BOB = "ada@example.test", "bob@example.test"


class MailTest(ServerTest):
    """Base of the suites that need the servers: starts them once for a class."""

    connector, script = "email", "email_mcp_server.py"

    @classmethod
    def setUpClass(cls):
        cls.servers = Servers()
        try:
            cls.mail = cls.servers.start()
        except Missing as e:
            raise unittest.SkipTest("no mail servers: %s" % e)
        except Exception:
            cls.servers.stop()
            raise

    @classmethod
    def tearDownClass(cls):
        cls.servers.stop()

    def setUp(self):
        for user in (ADA, BOB):
            with self.look(user) as imap:
                for folder in self.folders(imap):
                    if imap.select(folder)[1][0] != b"0":
                        imap.store("1:*", "+FLAGS", "(\\Deleted)")
                    imap.close()
                    if folder.strip('"') not in ("INBOX", "Sent", "Drafts", "Trash"):
                        imap.delete(folder)

    @staticmethod
    def folders(imap):
        return [line.decode().rpartition(' "/" ')[2] for line in imap.list()[1]
                if line and b"\\NonExistent" not in line and b"\\Noselect" not in line]

    def look(self, user=ADA):
        """Return a signed-in imaplib connection of the test's own."""
        imap = imaplib.IMAP4("127.0.0.1", self.mail["imap"])
        imap.authenticate("PLAIN", lambda _: ("\0%s\0%s" % (user, USERS[user])).encode())
        return imap

    def put(self, message, folder="INBOX", user=ADA, flags=None):
        """Put a message (bytes) into a folder; return its UID."""
        with self.look(user) as imap:
            status, data = imap.append(folder, flags, None, message.replace(b"\n", b"\r\n"))
            self.assertEqual(status, "OK", data)
            return int(data[0].split(b"]")[0].split()[-1])

    def environment(self):
        return self.settings()

    def settings(self, **changes):
        env = {"EMAIL_IMAP_HOST": "localhost", "EMAIL_IMAP_PORT": str(self.mail["imaps"]), "EMAIL_SMTP_HOST": "localhost",
               "EMAIL_SMTP_PORT": str(self.mail["smtps"]), "EMAIL_USERNAME": ADA, "EMAIL_PASSWORD": USERS[ADA],
               "EMAIL_CA_FILE": self.mail["ca_file"], "EMAIL_PUSH": "false",
               "EMAIL_FROM": "Ada Lovelace <%s>" % ADA}
        env.update(changes)
        return {k: v for k, v in env.items() if v is not None}

    def plain(self, port, **changes):
        """Settings for IMAP in clear through a port of a proxy."""
        return self.settings(EMAIL_IMAP_HOST="127.0.0.1", EMAIL_IMAP_PORT=str(port), EMAIL_IMAP_SECURITY="none", **changes)

    def wait_for(self, what, seconds=20):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            found = what()
            if found:
                return found
            time.sleep(0.05)
        self.fail("waited %d s in vain; log:\n%s" % (seconds, self.servers.logs()))


class Proxy:
    """Passes connections on to a port; what the server sends is changed by replace."""

    def __init__(self, port, replace=()):
        self.port_behind, self.replace = port, list(replace)
        self.connections, self.accepted = [], 0
        self.listener = socket.socket()
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(20)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                near = self.listener.accept()[0]
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self.port_behind))
            self.accepted += 1
            self.connections.append((near, far))
            for source, sink, change in ((near, far, ()), (far, near, self.replace)):
                threading.Thread(target=self._pump, args=(source, sink, change), daemon=True).start()

    def _pump(self, source, sink, change):
        try:
            while True:
                data = source.recv(65536)
                if not data:
                    break
                for old, new in change:
                    data = data.replace(old, new)
                sink.sendall(data)
        except OSError:
            pass
        self._end(source)
        self._end(sink)

    @staticmethod
    def _end(*sockets):
        for sock in sockets:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            sock.close()

    def drop(self):
        """Cut every connection that is open now."""
        for near, far in self.connections:
            self._end(near, far)
        self.connections = []

    def close(self):
        self.listener.close()
        self.drop()


class Script:
    """A false server: sends a greeting, then for each line received what answer(line) gives."""

    def __init__(self, greeting, answer):
        self.greeting, self.answer = greeting, answer
        self.listener = socket.socket()
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(5)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                sock = self.listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self._speak, args=(sock,), daemon=True).start()

    def _speak(self, sock):
        try:
            with sock, sock.makefile("rb") as lines:
                sock.sendall(self.greeting)
                for line in lines:
                    data = self.answer(line)
                    if data is None:
                        return
                    for piece in data if isinstance(data, list) else [data]:
                        sock.sendall(piece)
        except OSError:
            pass

    def close(self):
        self.listener.close()
