"""Starts a private IMAP server (dovecot) and SMTP server (exim) on loopback, for tests.

    python3 connectors/tests/mailserver.py

prints one JSON line when both answer, and runs until its input ends:

    {"host", "imap", "imaps", "smtp", "smtps", "ca_file", "users": {address: password}, "maildir", "folder"}

imap and smtp are plain with STARTTLS, imaps and smtps speak TLS from the start; the
certificate is for localhost and 127.0.0.1 and comes from a private authority, ca_file.
Mail that is sent to the users through SMTP arrives in their IMAP inbox; everybody else
is refused. Everything lives in one temporary folder that is removed at the end.

Needs the Debian packages dovecot-imapd, exim4-daemon-light and openssl. Exit code 3 and a
reason on stderr when something is not installed.
"""

import base64
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

USERS = {
    "ada@example.test": "Pa$$ w\"ord\\ {SECRET:X} 'è'",
    "bob@example.test": "bob-battery-staple",
}
HOST = "127.0.0.1"
START_SECONDS = 20

DOVECOT = """
base_dir = %(dir)s/run
state_dir = %(dir)s/state
log_path = %(dir)s/dovecot.log
protocols = imap
listen = 127.0.0.1
ssl = yes
ssl_cert = <%(dir)s/cert.pem
ssl_key = <%(dir)s/key.pem
ssl_dh =
disable_plaintext_auth = no
auth_mechanisms = plain login
auth_failure_delay = 0
auth_username_format = %%Lu
default_internal_user = %(internal)s
default_internal_group = %(internal_group)s
default_login_user = %(login)s
first_valid_uid = 1
first_valid_gid = 1
mail_location = maildir:%(dir)s/mail/%%u
mail_max_userip_connections = 100
mailbox_list_index = yes
passdb {
  driver = passwd-file
  args = scheme=PLAIN username_format=%%u %(dir)s/users
}
userdb {
  driver = static
  args = uid=%(uid)d gid=%(gid)d home=%(dir)s/mail/%%u
}
namespace inbox {
  inbox = yes
  separator = /
  mailbox Drafts {
    auto = subscribe
    special_use = \\Drafts
  }
  mailbox Sent {
    auto = subscribe
    special_use = \\Sent
  }
  mailbox Trash {
    auto = subscribe
    special_use = \\Trash
  }
}
service imap-login {
  %(chroot)s
  inet_listener imap {
    port = %(imap)d
  }
  inet_listener imaps {
    port = %(imaps)d
    ssl = yes
  }
}
service anvil {
  %(chroot)s
  unix_listener anvil-auth-penalty {
    mode = 0
  }
}
service stats {
  %(chroot)s
}
service imap {
  executable = imap
}
"""

EXIM = """
exim_user = %(user)s
exim_group = %(group)s
primary_hostname = mail.example.test
qualify_domain = example.test
spool_directory = %(dir)s/spool
log_file_path = %(dir)s/exim-%%slog
pid_file_path = %(dir)s/exim.pid
local_interfaces = 127.0.0.1
daemon_smtp_ports = %(smtp)d : %(smtps)d
tls_on_connect_ports = %(smtps)d
tls_advertise_hosts = *
tls_certificate = %(dir)s/cert.pem
tls_privatekey = %(dir)s/key.pem
auth_advertise_hosts = *
deliver_drop_privilege = true
never_users =
host_lookup =
rfc1413_query_timeout = 0s
smtp_accept_max = 100
smtp_accept_queue_per_connection = 0
message_size_limit = 30M
keep_environment =
acl_smtp_rcpt = rcpt
acl_smtp_data = accept
domainlist ours = example.test
begin acl
rcpt:
  deny message = sign in first
       !authenticated = *
  deny message = no such user here
       !domains = +ours
  require message = no such user here
       verify = recipient
  accept
begin routers
ours:
  driver = accept
  domains = +ours
  local_parts = %(locals)s
  transport = maildir
begin transports
maildir:
  driver = appendfile
  maildir_format
  directory = %(dir)s/mail/${lookup{$local_part@$domain}lsearch,ret=key{%(dir)s/passwords}}
  create_directory
  mode = 0600
  user = %(user)s
  group = %(group)s
begin retry
* * F,1h,1m
begin authenticators
plain:
  driver = plaintext
  public_name = PLAIN
  server_prompts = :
  server_condition = ${if eq{$auth3}{${lookup{$auth2}lsearch{%(dir)s/passwords}{$value}{}}}{${if eq{$auth3}{}{no}{yes}}}{no}}
  server_set_id = $auth2
login:
  driver = plaintext
  public_name = LOGIN
  server_prompts = <| Username: | Password:
  server_condition = ${if eq{$auth2}{${lookup{$auth1}lsearch{%(dir)s/passwords}{$value}{}}}{${if eq{$auth2}{}{no}{yes}}}{no}}
  server_set_id = $auth1
"""


class Missing(Exception):
    """A program that is not installed."""


def program(*names):
    for name in names:
        found = shutil.which(name, path=os.environ.get("PATH", "") + os.pathsep + "/usr/sbin:/usr/local/sbin")
        if found:
            return found
    raise Missing("%s is not installed" % names[0])


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind((HOST, 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def make_certificates(folder):
    """Make a private authority and a certificate of its own for localhost."""
    def openssl(*args):
        subprocess.run([program("openssl")] + list(args), cwd=folder, check=True, stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    openssl("req", "-x509", *key, "-keyout", "ca-key.pem", "-out", "ca.pem", "-days", "30", "-subj", "/CN=Test authority")
    openssl("req", *key, "-keyout", "key.pem", "-out", "req.pem", "-subj", "/CN=localhost")
    with open(os.path.join(folder, "ext"), "w") as f:
        f.write("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    openssl("x509", "-req", "-in", "req.pem", "-CA", "ca.pem", "-CAkey", "ca-key.pem", "-CAcreateserial",
            "-out", "cert.pem", "-days", "30", "-extfile", "ext")


def settings(folder):
    """Return the values for both configurations."""
    root = os.geteuid() == 0
    me = pwd.getpwuid(os.geteuid()).pw_name
    user = pwd.getpwnam("Debian-exim") if root else pwd.getpwnam(me)
    group = __import__("grp").getgrgid(user.pw_gid).gr_name
    imap, imaps, smtp, smtps = free_ports(4)
    return {"dir": folder, "imap": imap, "imaps": imaps, "smtp": smtp, "smtps": smtps, "uid": user.pw_uid,
            "gid": user.pw_gid, "user": user.pw_name, "group": group, "login": "dovenull" if root else me,
            "internal": "dovecot" if root else me, "internal_group": "dovecot" if root else group,
            "chroot": "" if root else "chroot =", "locals": " : ".join(sorted(u.split("@")[0] for u in USERS))}


def write(folder, name, text, mode=0o644):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, mode)
    return path


class Servers:
    """Both servers; start() returns the description that is printed, stop() ends them."""

    def __init__(self):
        self.folder = ""
        self.children = []

    def start(self):
        dovecot, exim = program("dovecot"), program("exim4", "exim")
        self.folder = tempfile.mkdtemp(prefix="mail-")
        os.chmod(self.folder, 0o755)
        values = settings(self.folder)
        make_certificates(self.folder)
        write(self.folder, "users", "".join("%s:{PLAIN.B64}%s::::::\n" % (u, base64.b64encode(p.encode()).decode())
                                             for u, p in USERS.items()))
        write(self.folder, "passwords", "".join("%s: %s\n" % item for item in USERS.items()))
        for name in ("run", "state", "mail", "spool"):
            os.mkdir(os.path.join(self.folder, name))
        for user in USERS:
            os.mkdir(os.path.join(self.folder, "mail", user), 0o700)
        if os.geteuid() == 0:
            for name in ["mail", "spool", "key.pem", "passwords"] + [os.path.join("mail", u) for u in USERS]:
                os.chown(os.path.join(self.folder, name), values["uid"], values["gid"])
            os.chown(self.folder, values["uid"], values["gid"])  # exim writes its logs here
        os.chmod(os.path.join(self.folder, "key.pem"), 0o600)
        self._spawn([dovecot, "-F", "-c", write(self.folder, "dovecot.conf", DOVECOT % values)])
        self._spawn([exim, "-C", write(self.folder, "exim.conf", EXIM % values), "-bdf", "-q1m"])
        for port in ("imap", "imaps", "smtp", "smtps"):
            self._wait(values[port])
        return {"host": HOST, "imap": values["imap"], "imaps": values["imaps"], "smtp": values["smtp"],
                "smtps": values["smtps"], "ca_file": os.path.join(self.folder, "ca.pem"), "users": USERS,
                "maildir": os.path.join(self.folder, "mail"), "folder": self.folder}

    def _spawn(self, argv):
        with open(os.path.join(self.folder, "console.log"), "ab") as log:
            self.children.append(subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                                  start_new_session=True))

    def _wait(self, port):
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until:
            for child in self.children:
                if child.poll() is not None:
                    raise RuntimeError("%s ended with code %d:\n%s" % (child.args[0], child.returncode, self.logs()))
            try:
                socket.create_connection((HOST, port), 1).close()
                return
            except OSError:
                time.sleep(0.05)
        raise RuntimeError("nothing listens on port %d:\n%s" % (port, self.logs()))

    def logs(self):
        """Return what the servers wrote, for a test that failed."""
        out = []
        for name in sorted(os.listdir(self.folder)):
            if name.endswith("log"):
                with open(os.path.join(self.folder, name), encoding="utf-8", errors="replace") as f:
                    out.append("== %s\n%s" % (name, f.read()[-6000:]))
        return "\n".join(out)

    def stop(self):
        for child in self.children:
            if child.poll() is None:
                child.terminate()
        for child in self.children:
            try:
                child.wait(5)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)


def main():
    servers = Servers()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        description = servers.start()
        print(json.dumps(description), flush=True)
        sys.stdin.read()
    except Missing as e:
        print(e, file=sys.stderr)
        return 3
    except RuntimeError as e:
        print(e, file=sys.stderr)
        return 1
    finally:
        servers.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
