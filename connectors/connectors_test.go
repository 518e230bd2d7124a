package connectors_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"skald-connectors/connectors"
)

// suiteLimit is far above what a suite needs on a loaded machine; it only ends a hang.
const suiteLimit = 8 * time.Minute

// The servers' own suites, in Python since they speak to the servers as a client does.
// email ones need real mail servers and skip themselves, with the reason, without them.
var suites = []struct {
	name string
	slow bool // about a minute
}{
	{"test_shipped", false},
	{"test_http_fetch", false},
	{"test_weather", false},
	{"test_wikipedia", false},
	{"test_drive", true},
	{"test_gcal", true},
	{"test_gmail", true},
	{"test_email_tools", true},
	{"test_email_connect", true},
}

func TestServers(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the suites use signals and sockets of Unix")
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	found, err := fs.Glob(os.DirFS("tests"), "test_*.py")
	if err != nil || len(found) != len(suites) {
		t.Fatalf("tests/ holds %v; the table names %d suites", found, len(suites))
	}
	for _, suite := range suites {
		t.Run(suite.name, func(t *testing.T) {
			if suite.slow && testing.Short() {
				t.Skip("takes about a minute; left out with -short")
			}
			t.Parallel()
			runSuite(t, python, suite.name)
		})
	}
}

var (
	ranPattern    = regexp.MustCompile(`(?m)^Ran (\d+) tests?`)
	skipPattern   = regexp.MustCompile(`(?m)^OK \(skipped=(\d+)\)`)
	reasonPattern = regexp.MustCompile(`(?m)skipped ['"](.*)['"]$`)
)

func runSuite(t *testing.T, python, name string) {
	ctx, cancel := context.WithTimeout(t.Context(), suiteLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, python, "-B", "-W", "ignore::ResourceWarning", "-m", "unittest", "-v", name)
	cmd.Dir = "tests"
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("python3 -m unittest %s: %v\n%s", name, err, out)
	}
	ran := ranPattern.FindSubmatch(out)
	skipped := skipPattern.FindSubmatch(out)
	switch {
	case ran == nil:
		t.Fatalf("the suite did not say how many tests it ran:\n%s", out)
	case string(ran[1]) == "0" && skipped == nil:
		t.Fatalf("the suite holds no test:\n%s", out)
	case skipped != nil:
		var reasons []string
		for _, m := range reasonPattern.FindAllSubmatch(out, -1) {
			reasons = append(reasons, string(m[1]))
		}
		slices.Sort(reasons)
		t.Skipf("%s skipped: %s", skipped[1], strings.Join(slices.Compact(reasons), "; "))
	}
}

// TestNodeServers runs the suites of the connectors in JavaScript with node's own runner.
func TestNodeServers(t *testing.T) {
	runNode(t, nil, "whatsapp/session.test.mjs", "whatsapp/tools.test.mjs")
}

// TestBaileys installs the packages of whatsapp and starts it with them, as far as it goes without its service. It takes
// half a minute and the npm registry.
func TestBaileys(t *testing.T) {
	if testing.Short() || os.Getenv("SKALD_TEST_REQUIRE") == "" {
		t.Skip("asks the npm registry; run with SKALD_TEST_REQUIRE=1, left out with -short")
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		t.Fatal("npm is missing and SKALD_TEST_REQUIRE is set")
	}
	dir := filepath.Join(t.TempDir(), "whatsapp")
	if err := os.CopyFS(dir, os.DirFS("whatsapp")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("npm ci: %v\n%s", err, out)
	}
	runNode(t, []string{"WHATSAPP_DIR=" + dir}, "whatsapp/real.test.mjs")
}

var nodeCount = regexp.MustCompile(`(?m)^# (pass|fail|skipped) (\d+)$`)

func runNode(t *testing.T, env []string, files ...string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the suites use links and modes of Unix")
	}
	node, err := exec.LookPath("node")
	if err != nil {
		if os.Getenv("SKALD_TEST_REQUIRE") != "" {
			t.Fatal("node is missing and SKALD_TEST_REQUIRE is set")
		}
		t.Skip("node is not installed")
	}
	ctx, cancel := context.WithTimeout(t.Context(), suiteLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, append([]string{"--test", "--test-reporter=tap"}, files...)...)
	cmd.Dir = "tests"
	cmd.Env = append(os.Environ(), env...)
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("node --test %v: %v\n%s", files, err, out)
	}
	counts := map[string]string{}
	for _, m := range nodeCount.FindAllSubmatch(out, -1) {
		counts[string(m[1])] = string(m[2])
	}
	if counts["fail"] != "0" || counts["skipped"] != "0" || counts["pass"] == "0" || counts["pass"] == "" {
		t.Fatalf("node --test %v: %v\n%s", files, counts, out)
	}
}

type index struct {
	Connectors []struct {
		ID, Folder string
		Files      []struct {
			Path, SHA256 string
			Size         int64
		}
	}
}

func readIndex(t *testing.T) index {
	t.Helper()
	src, err := fs.ReadFile(connectors.Tree(), "connectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var ix index
	if err := json.Unmarshal(src, &ix); err != nil {
		t.Fatalf("parsing connectors.json: %v", err)
	}
	return ix
}

// TestTreeIsPinned compares every embedded file with its pin, and every pin with a file.
func TestTreeIsPinned(t *testing.T) {
	ix := readIndex(t)
	if len(ix.Connectors) == 0 {
		t.Fatal("connectors.json names no connector")
	}
	pinned := map[string]string{}
	for _, c := range ix.Connectors {
		for _, f := range c.Files {
			pinned[path.Join(c.Folder, f.Path)] = fmt.Sprintf("%s %d", f.SHA256, f.Size)
		}
	}
	err := fs.WalkDir(connectors.Tree(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.Contains(name, "/") || path.Base(name) == "fragment.json" {
			return err
		}
		data, err := fs.ReadFile(connectors.Tree(), name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(data)
		if got := fmt.Sprintf("%s %d", hex.EncodeToString(sum[:]), len(data)); pinned[name] != got {
			t.Errorf("%s: connectors.json is stale: pinned as %q, is %q", name, pinned[name], got)
		}
		delete(pinned, name)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range pinned {
		t.Errorf("%s is pinned and not embedded", name)
	}
}

// TestTreeHoldsNothingElse guards against test files and build rubbish in the binary.
func TestTreeHoldsNothingElse(t *testing.T) {
	allowed := regexp.MustCompile(`^(index\.json|connectors\.json|[a-z-]+/(fragment\.json|connector\.json|[a-z_]+\.(py|mjs)|package(-lock)?\.json|icon_(sm|lg)\.svg))$`)
	seen := 0
	err := fs.WalkDir(connectors.Tree(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		seen++
		if !allowed.MatchString(name) || strings.HasPrefix(name, "tests/") {
			t.Errorf("%s is embedded", name)
		}
		return nil
	})
	if err != nil || seen < 20 {
		t.Fatalf("%d files, error %v", seen, err)
	}
}

func TestTreeIsReadOnlyAndRooted(t *testing.T) {
	var order []string
	src, err := fs.ReadFile(connectors.Tree(), "index.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(src, &order); err != nil {
		t.Fatal(err)
	}
	for i, c := range readIndex(t).Connectors {
		if c.ID != order[i] || c.Folder != order[i] {
			t.Errorf("entry %d is %q in folder %q; index.json says %q", i, c.ID, c.Folder, order[i])
		}
	}
	_, err = fs.ReadFile(connectors.Tree(), "../go.mod")
	if want := `open ../go.mod: invalid argument`; err == nil || !strings.HasPrefix(err.Error(), "open ../go.mod: ") {
		t.Errorf("reading outside the tree: got %v, want an error like %q", err, want)
	}
}
