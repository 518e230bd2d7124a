// The same connector for Node: it tries to get out and prints one JSON line for each attempt.
"use strict";
const fs = require("fs"), net = require("net"), dgram = require("dgram"), path = require("path");
const { spawn, spawnSync } = require("child_process");

const task = process.argv[2], given = JSON.parse(process.argv[3]);
const out = process.env.HOSTILE_OUT ? fs.openSync(process.env.HOSTILE_OUT, "a") : 1;

function say(attempt, open, detail) {
  fs.writeSync(out, JSON.stringify({ attempt, open, detail: String(detail).slice(0, 80) }) + "\n");
}

async function attempt(name, run) {
  try {
    say(name, true, await run());
  } catch (e) {
    say(name, false, e.code || e.name);
  }
}

function read(file) {
  const fd = fs.openSync(file, "r"), buf = Buffer.alloc(64);
  try {
    return buf.toString("latin1", 0, fs.readSync(fd, buf));
  } finally {
    fs.closeSync(fd);
  }
}

const write = (file) => fs.appendFileSync(file, "x");

function connect(where) {
  return new Promise((resolve, reject) => {
    const s = net.connect(where);
    s.setTimeout(3000, () => s.destroy(Object.assign(new Error(), { code: "ETIMEDOUT" })));
    s.on("data", (d) => { resolve(d); s.destroy(); });
    s.on("error", reject);
    s.on("close", () => reject(Object.assign(new Error(), { code: "CLOSED" })));
  });
}

function tcp(target) {
  const i = target.lastIndexOf(":");
  return connect({ host: target.slice(0, i), port: +target.slice(i + 1) });
}

function udp(target) {
  const i = target.lastIndexOf(":");
  return new Promise((resolve, reject) => {
    const s = dgram.createSocket("udp4");
    const timer = setTimeout(() => { s.close(); reject(Object.assign(new Error(), { code: "ETIMEDOUT" })); }, 1000);
    const end = (f) => (v) => { clearTimeout(timer); try { s.close(); } catch {} f(v); };
    s.on("message", end(resolve));
    s.on("error", end(reject));
    s.send("x", +target.slice(i + 1), target.slice(0, i), (e) => { if (e) end(reject)(e); });
  });
}

function others() {
  const mine = [String(process.pid), String(process.ppid), "1"];
  const seen = fs.readdirSync("/proc").filter((p) => /^[0-9]+$/.test(p) && !mine.includes(p));
  if (seen.length === 0) throw Object.assign(new Error(), { code: "ENOENT" });
  return read(`/proc/${seen[0]}/cmdline`);
}

async function everything() {
  const g = given;
  await attempt("read an SSH key in your home", () => read(g.ssh));
  await attempt("read the vault of the key store", () => read(g.vault));
  await attempt("read the state of another connector", () => read(g.other));
  await attempt("list your home", () => { if (!fs.readdirSync(g.home).includes(".ssh")) throw Object.assign(new Error(), { code: "ENOENT" }); });
  await attempt("write a file in your home", () => write(g.outside));
  await attempt("change the permissions of a file in your home", () => fs.chmodSync(g.ssh, 0o600));
  await attempt("read the passwords of the system", () => read("/etc/shadow"));
  await attempt("see the other processes", others);
  await attempt("read the environment of the launcher", () => read(`/proc/${g.launcher}/environ`));
  await attempt("read the memory of the launcher", () => fs.closeSync(fs.openSync(`/proc/${g.launcher}/mem`, "r")));
  await attempt("signal the launcher", () => process.kill(g.launcher, 0));
  await attempt("talk to the Docker socket", () => connect({ path: g.docker }));
  await attempt("works: read its own folder", () => read(g.own));
  await attempt("works: write its state", () => write(g.state));
  await attempt("works: start a program", () => { if (spawnSync("/bin/true").status !== 0) throw new Error("no"); });
  await attempt("works: write temporary files", () => write(path.join(process.env.TMPDIR || "/tmp", "x")));
}

async function network() {
  for (const [name, target] of Object.entries(given.tcp)) await attempt(name, () => tcp(target));
  for (const [name, target] of Object.entries(given.udp)) await attempt(name, () => udp(target));
}

async function forks() {
  const children = [];
  await attempt("start more processes than allowed", async () => {
    try {
      while (children.length < given.most) {
        const c = spawn("/bin/sleep", ["60"], { stdio: "ignore" });
        children.push(c);
        await new Promise((resolve, reject) => { c.on("spawn", resolve); c.on("error", reject); });
      }
    } finally {
      const started = children.filter((c) => c.pid);
      const ends = started.map((c) => new Promise((resolve) => c.on("exit", resolve)));
      for (const c of started) c.kill("SIGKILL");
      await Promise.all(ends);
    }
    return children.length;
  });
}

const memory = () => attempt("take more memory than allowed", () => Buffer.alloc(given.bytes, 1).length);

async function disk() {
  process.on("SIGXFSZ", () => {});
  const one = (file, size) => { fs.writeFileSync(file, ""); for (let i = 0; i < size >> 20; i++) fs.appendFileSync(file, Buffer.alloc(1 << 20)); };
  await attempt("write a larger file than allowed", () => one(given.large, given.disk));
  await attempt("fill the disk with temporary files", () => {
    for (let i = 0; i < given.disk >> 22; i++) one(path.join(process.env.TMPDIR || "/tmp", "f" + i), 1 << 22);
  });
}

function linger() {
  const code = `
    process.on("SIGTERM", () => {});
    require("net").createServer().on("error", () => console.log("ready")).listen(${given.port}, "127.0.0.1", () => console.log("ready"));
    setTimeout(() => {}, 60000)`;
  const c = spawn(process.execPath, ["-e", code], { detached: true, stdio: ["ignore", "pipe", "ignore"] });
  c.stdout.once("data", () => { console.log("ready"); c.unref(); setTimeout(() => process.exit(0), given.stay * 1000); });
}

({ everything, network, forks, memory, disk, linger })[task]();
