"""A connector that tries to get out. It is given a task and what to try it on,
and prints one JSON line for each attempt: whether it came through, and how it ended."""
import ctypes, errno, json, os, signal, socket, sys, time

task, given = sys.argv[1], json.loads(sys.argv[2])
libc = ctypes.CDLL(None, use_errno=True)


def attempt(name, do):
    try:
        detail = do()
        print(json.dumps({"attempt": name, "open": True, "detail": str(detail)[:80]}), flush=True)
    except BaseException as e:
        print(json.dumps({"attempt": name, "open": False, "detail": "%s %s" % (type(e).__name__, getattr(e, "errno", ""))}), flush=True)


def read(path):
    with open(path, "rb") as f:
        return f.read(64)


def write(path):
    with open(path, "a") as f:
        f.write("x")


def call(number, *args):
    kept = [ctypes.create_string_buffer(a) if isinstance(a, bytes) else a for a in args]
    args = [ctypes.addressof(a) if isinstance(a, ctypes.Array) else a for a in kept]
    if libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) for a in args]) < 0:
        e = ctypes.get_errno()
        raise OSError(e, os.strerror(e))
    return "done"


def unix(path, kind=socket.SOCK_STREAM):
    s = socket.socket(socket.AF_UNIX, kind)
    s.settimeout(3)
    s.connect(path)
    return s.recv(16)


def through_pair(path):
    try:
        a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    except OSError:
        a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_RAW)  # is one for datagrams too
    a.sendto(b"x", path)


def tcp(target, proto=0):
    host, port = target.rsplit(":", 1)
    for family, _, _, _, addr in socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM):
        s = socket.socket(family, socket.SOCK_STREAM, proto)
        s.settimeout(3)
        s.connect(addr)
        got = s.recv(16)
        if not got:
            raise OSError(errno.ECONNRESET, "nothing came")
        return got


def udp(target):
    host, port = target.rsplit(":", 1)
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(1)
    s.sendto(b"x", (host, int(port)))
    return s.recvfrom(16)


def seize(pid):
    seize, detach = 0x4206, 17
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    if libc.ptrace(seize, pid, None, None) < 0:
        e = ctypes.get_errno()
        raise OSError(e, os.strerror(e))


def others():
    mine = {str(os.getpid()), str(os.getppid()), "1"}
    seen = [p for p in os.listdir("/proc") if p.isdigit() and p not in mine]
    if not seen:
        raise OSError(errno.ENOENT, "nobody")
    return read("/proc/%s/cmdline" % seen[0])


def everything():
    g = given
    attempt("read an SSH key in your home", lambda: read(g["ssh"]))
    attempt("read the vault of the key store", lambda: read(g["vault"]))
    attempt("read the state of another connector", lambda: read(g["other"]))
    attempt("list your home", lambda: os.listdir(g["home"]).index(".ssh"))
    attempt("write a file in your home", lambda: write(g["outside"]))
    attempt("change the permissions of a file in your home", lambda: os.chmod(g["ssh"], 0o600))
    attempt("read the passwords of the system", lambda: read("/etc/shadow"))
    attempt("see the other processes", others)
    attempt("read the environment of the launcher", lambda: read("/proc/%d/environ" % g["launcher"]))
    attempt("read the memory of the launcher", lambda: open("/proc/%d/mem" % g["launcher"], "rb").close())
    attempt("signal the launcher", lambda: os.kill(g["launcher"], 0))
    attempt("trace the launcher", lambda: seize(g["launcher"]))
    attempt("talk to the Docker socket", lambda: unix(g["docker"]))
    attempt("talk to D-Bus on an abstract socket", lambda: unix("\0" + g["abstract"]))
    attempt("send to a socket through a datagram pair", lambda: through_pair(g["datagram"]))
    attempt("make a user namespace", lambda: call(272 if os.uname().machine == "x86_64" else 97, 0x10000000))
    attempt("set up io_uring", lambda: call(425, 8, bytes(256)))
    attempt("use the key ring of the kernel", lambda: call(250 if os.uname().machine == "x86_64" else 219, 0, -3, 1))
    attempt("catch its own page faults", lambda: call(323 if os.uname().machine == "x86_64" else 282, 1))
    attempt("works: read its own folder", lambda: read(g["own"]))
    attempt("works: write its state", lambda: write(g["state"]))
    attempt("works: start a program", lambda: os.waitpid(os.spawnv(os.P_NOWAIT, "/bin/true", ["true"]), 0)[1] and 1 / 0)
    attempt("works: write temporary files", lambda: write(os.path.join(os.environ.get("TMPDIR", "/tmp"), "x")))


def network():
    for name, target in given["tcp"].items():
        attempt(name, lambda: tcp(target))
    for name, target in given["mptcp"].items():
        attempt(name, lambda: tcp(target, 262))
    for name, target in given["udp"].items():
        attempt(name, lambda: udp(target))


def forks():
    children = []

    def storm():
        try:
            while len(children) < given["most"]:
                pid = os.fork()
                if pid == 0:
                    time.sleep(60)
                    os._exit(0)
                children.append(pid)
        finally:
            for pid in children:
                os.kill(pid, signal.SIGKILL)
            for pid in children:
                os.waitpid(pid, 0)
        return len(children)
    attempt("start more processes than allowed", storm)


def memory():
    attempt("take more memory than allowed", lambda: len(bytearray(given["bytes"])))


def disk():
    def one(path, size):
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        with open(path, "wb") as f:
            for _ in range(size >> 20):
                f.write(bytes(1 << 20))
    attempt("write a larger file than allowed", lambda: one(given["large"], given["disk"]))

    def many():
        folder = os.environ.get("TMPDIR", "/tmp")
        for i in range(given["disk"] >> 22):
            one(os.path.join(folder, "f%d" % i), 1 << 22)
    attempt("fill the disk with temporary files", many)


def linger():
    """Leaves parent, group and session, and stays."""
    try:
        import resource
        resource.setrlimit(15, (1 << 57, 1 << 57))  # hides from those who look for its limits
    except BaseException:
        pass
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            listener = None
            try:
                listener = socket.socket()
                listener.bind(("127.0.0.1", given["port"]))
                listener.listen(1)
            except OSError:
                pass
            print("ready", flush=True)
            null = os.open("/dev/null", os.O_RDWR)
            for fd in range(3):
                os.dup2(null, fd)
            time.sleep(60)
        os._exit(0)
    os.wait()
    time.sleep(given["stay"])


{"everything": everything, "network": network, "forks": forks, "memory": memory, "disk": disk, "linger": linger}[task]()
