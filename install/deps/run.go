package deps

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"skald-connectors/keystore"
	"skald-connectors/sandbox"
)

// buildOutput is what is kept of an installer's output: enough for the report of what
// failed.
const buildOutput = 256 << 10

// Options says how a set is installed.
type Options struct {
	Sandbox *sandbox.Sandbox
	Tool    *Tool
	Base    []string // the environment that a process of ours is started with
	Timeout time.Duration
	// AllowScripts lets install scripts run and sources be built.
	AllowScripts bool
	// Cache, when not "", is a folder of ours for what npm and pip download; it stays, so
	// that another machine can be given it. Offline takes everything from there, and
	// nothing is asked.
	Cache   string
	Offline bool
	// Progress, when not nil, is told how many packages are in place, of how many
	// (0 = unknown), about twice a second.
	Progress func(done, total int)
	// Say, when not nil, is told what a person should know.
	Say func(string)
	// Step, when not nil, is told each step before it is made.
	Step func(string)
}

// Result is what was installed.
type Result struct {
	Packages []Package // all of them, with the digests of their bytes where known
	Ran      []string  // packages whose install scripts ran, as name@version
	Start    *Start    // with its script
	Notes    []string
}

// Build installs the set into tree, an empty folder; scratch is an empty folder beside
// it for everything that does not stay. Both are absolute and ours. Errors:
// *BuildError, *RefusedError for what a registry's answer would bring, the cause of
// ctx when that ended it.
func (s Set) Build(ctx context.Context, tree, scratch string, o Options) (*Result, error) {
	b := &build{set: s, tree: tree, scratch: scratch, o: o}
	limited, cancel := context.WithTimeoutCause(ctx, o.Timeout, errTimeout)
	defer cancel()
	for _, name := range []string{"home", "tmp", "cache"} {
		if err := os.Mkdir(filepath.Join(scratch, name), 0o700); err != nil {
			return nil, err
		}
	}
	var res *Result
	var err error
	if s.Ecosystem == Pip {
		res, err = b.pip(limited)
	} else {
		res, err = b.npm(limited)
	}
	if err != nil && ctx.Err() == nil && errors.Is(context.Cause(limited), errTimeout) {
		return nil, &BuildError{Ecosystem: s.Ecosystem, Kind: TimedOut, Detail: o.Timeout.String(), Tail: b.tail}
	}
	return res, err
}

var errTimeout = errors.New("the time limit")

// build is one call of Build.
type build struct {
	set           Set
	tree, scratch string
	o             Options
	tail          string // of the last command's output
}

func (b *build) say(format string, args ...any) {
	if b.o.Say != nil {
		b.o.Say(fmt.Sprintf(format, args...))
	}
}

func (b *build) step(name string) {
	if b.o.Step != nil {
		b.o.Step(name)
	}
}

// environ is the base with a home and a temporary folder of its own, and nothing of a
// connector.
func (b *build) environ(more ...string) []string {
	drop := []string{"HOME", "USERPROFILE", "TMPDIR", "TMP", "TEMP", "USER", "LOGNAME"}
	var out []string
	for _, kv := range b.o.Base {
		if name, _, _ := strings.Cut(kv, "="); !slices.Contains(drop, name) {
			out = append(out, kv)
		}
	}
	home, tmp := filepath.Join(b.scratch, "home"), filepath.Join(b.scratch, "tmp")
	out = append(out, "HOME="+home, "USERPROFILE="+home, "TMPDIR="+tmp, "TMP="+tmp, "TEMP="+tmp)
	return append(out, more...)
}

// policy is what an installer may do: its own folders, its registry, the files that
// the person's settings name.
func (b *build) policy(hosts []string) sandbox.Policy {
	t := b.o.Tool
	if b.o.Offline {
		hosts = nil
	}
	hosts = localHosts(hosts)
	p, open := b.o.Sandbox.Install(b.tree, hosts)
	if open != "" && len(hosts) > 0 {
		b.say("%s: %s", b.set.Ecosystem, open)
	}
	p.Own = append(p.Own, b.scratch)
	if b.o.Cache != "" {
		p.Own = append(p.Own, b.o.Cache)
	}
	p.Read = slices.Concat([]string{filepath.Dir(filepath.Dir(t.Path)), t.dir}, t.npm.files, t.pip.files)
	for _, kv := range b.o.Base {
		name, value, _ := strings.Cut(kv, "=")
		if slices.Contains([]string{"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"}, name) {
			p.Read = append(p.Read, value)
		}
	}
	p.Read = slices.DeleteFunc(p.Read, func(path string) bool {
		_, err := os.Stat(path)
		return !filepath.IsAbs(path) || err != nil
	})
	p.Loopback = slices.ContainsFunc(hosts, func(h string) bool { return strings.HasPrefix(h, "localhost:") })
	p.Limits.Wall, p.Limits.Stdout, p.Limits.Stderr = b.o.Timeout, buildOutput, buildOutput
	if mode := b.o.Sandbox.Enforced(p).Mode; mode == sandbox.None || mode == sandbox.Landlock {
		p.Limits.Processes = 0 // there it would count everything that the person runs
	}
	return p
}

// localHosts names this machine's own addresses as a policy does.
func localHosts(hosts []string) []string {
	out := slices.Clone(hosts)
	for i, h := range out {
		if host, port, err := net.SplitHostPort(h); err == nil {
			if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
				out[i] = "localhost:" + port
			}
		}
	}
	return out
}

// run starts one command and judges its end.
func (b *build) run(ctx context.Context, policy sandbox.Policy, c sandbox.Command, secrets []keystore.Handle) error {
	b.step("deps-run")
	res, err := b.o.Sandbox.Run(ctx, policy, c, nil)
	out := string(res.Stderr) + "\n" + string(res.Stdout)
	out = strings.ToValidUTF8(keystore.NewRedactor(secrets).String(out), "\uFFFD")
	b.tail = lastLines(out)
	var start *sandbox.StartError
	switch {
	case errors.As(err, &start), err != nil && ctx.Err() != nil:
		return err
	case err != nil:
		return fmt.Errorf("starting %s: %w", b.set.Ecosystem, err)
	case res.TimedOut:
		return &BuildError{Ecosystem: b.set.Ecosystem, Kind: TimedOut, Detail: b.o.Timeout.String(), Tail: b.tail}
	case res.Code == 0 && res.Signal == "":
		return nil
	}
	kind, detail := classify(b.set.Ecosystem, out)
	if kind == Failed {
		detail = fmt.Sprintf("exit code %d", res.Code)
		if res.Signal != "" {
			detail = "signal " + res.Signal
		}
	}
	return &BuildError{Ecosystem: b.set.Ecosystem, Kind: kind, Detail: detail, Tail: b.tail}
}

// A symptom is what npm or pip writes when it fails for a reason. The first that is
// found decides, so the causes stand before what follows from them.
type symptom struct {
	text *regexp.Regexp
	kind Kind
}

func symptoms(e Ecosystem) []symptom {
	if e == Pip {
		return []symptom{
			{regexp.MustCompile(`No space left on device|Disk quota exceeded`), NoSpace},
			{regexp.MustCompile(`trying to install outside`), Unsafe},
			{regexp.MustCompile(`DO NOT MATCH THE HASHES|Got +[0-9a-f]{64}`), Mismatch},
			{regexp.MustCompile(`Hashes are required|--require-hashes mode, all requirements`), Unhashed},
			{regexp.MustCompile(`\b40[13] Client Error|Unauthorized|User for .*:`), Denied},
			{regexp.MustCompile(`CERTIFICATE_VERIFY_FAILED|SSLError|NewConnectionError|ConnectTimeoutError|ProxyError|Max retries exceeded|Connection refused|Name or service not known|Temporary failure in name resolution|Network is unreachable`), Unreachable},
			{regexp.MustCompile(`command '[^']*(gcc|cc|clang|cl\.exe)[^']*' failed|Microsoft Visual C\+\+|metadata-generation-failed|Failed building wheel|subprocess-exited-with-error`), NeedsBuild},
			{regexp.MustCompile(`No matching distribution found|Could not find a version`), Missing},
		}
	}
	return []symptom{
		{regexp.MustCompile(`\b(ENOSPC|EDQUOT)\b`), NoSpace},
		{regexp.MustCompile(`\bEINTEGRITY\b`), Mismatch},
		{regexp.MustCompile(`npm (ERR!|error) code E40[13]|\bENEEDAUTH\b`), Denied},
		{regexp.MustCompile(`npm (ERR!|error) code (E404|ETARGET|ENOVERSIONS|EBADPLATFORM)`), Missing},
		{regexp.MustCompile(`\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ERR_SOCKET_TIMEOUT|EPROTO|FETCH_ERROR|E5\d\d|UNABLE_TO_[A-Z_]+|SELF_SIGNED_CERT[A-Z_]*|DEPTH_ZERO_SELF_SIGNED_CERT|CERT_[A-Z_]+|ERR_TLS[A-Z_]*)\b`), Unreachable},
		{regexp.MustCompile(`\b(EALLOWGIT|EALLOWREMOTE|EALLOWFILE|EALLOWDIRECTORY)\b|no-such-program-for-git`), Unsafe},
		{regexp.MustCompile(`gyp ERR!|node-gyp|not found: make|prebuild-install`), NeedsBuild},
	}
}

// classify finds the reason in an installer's output, with the word that told it.
func classify(e Ecosystem, out string) (Kind, string) {
	for _, s := range symptoms(e) {
		if found := s.text.FindString(out); found != "" {
			return s.kind, strings.TrimPrefix(strings.TrimPrefix(found, "npm error code "), "npm ERR! code ")
		}
	}
	return Failed, ""
}

// watch tells the progress until its end is called: the packages that are in place
// are folders.
func (b *build) watch(total int, count func() int) (end func()) {
	if b.o.Progress == nil {
		return func() {}
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(500 * time.Millisecond)
		defer ticker.Stop()
		for {
			b.o.Progress(count(), total)
			select {
			case <-ticker.C:
			case <-stop:
				return
			}
		}
	}()
	return func() { close(stop); <-done }
}

// full tells whether an error of ours is a full disk.
func full(e Ecosystem, err error) error {
	if errors.Is(err, syscall.ENOSPC) {
		return &BuildError{Ecosystem: e, Kind: NoSpace, Err: err}
	}
	return err
}
