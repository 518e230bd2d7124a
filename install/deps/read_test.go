package deps

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// digest512 is a well-formed sha512 integrity.
var digest512 = "sha512-" + strings.Repeat("A", 86) + "=="

const canary = "canary-9f3c" // stands for content that an error must not repeat

// lockOf wraps entries of a lock file.
func lockOf(entries string) string {
	return `{"lockfileVersion":3,"packages":{"":{"dependencies":{"a":"^1.0.0"}},` + entries + `}}`
}

func npmInput(packageJSON, lock string) Input {
	in := Input{Files: map[string][]byte{packageFile: []byte(packageJSON)}, Command: "node"}
	if lock != "" {
		in.Files[lockFile] = []byte(lock)
	}
	return in
}

func refusal(t *testing.T, in Input) *RefusedError {
	t.Helper()
	sets, err := Read(in)
	var refused *RefusedError
	if !errors.As(err, &refused) {
		t.Fatalf("it was not refused: %+v, %v", sets, err)
	}
	if strings.Contains(err.Error(), canary) {
		t.Errorf("the error repeats content: %v", err)
	}
	return refused
}

// TestHostileLocks are the rows of H24 and their kin: each is refused before npm
// starts.
func TestHostileLocks(t *testing.T) {
	good := `"version":"1.0.0","integrity":"` + digest512 + `"`
	for name, row := range map[string]struct{ lock, want string }{
		"no integrity":           {lockOf(`"node_modules/a":{"version":"1.0.0"}`), "without integrity"},
		"sha1":                   {lockOf(`"node_modules/a":{"version":"1.0.0","integrity":"sha1-` + canary + `"}`), "no SHA-512"},
		"short sha512":           {lockOf(`"node_modules/a":{"version":"1.0.0","integrity":"sha512-AAAA"}`), "no SHA-512"},
		"another host":           {lockOf(`"node_modules/a":{` + good + `,"resolved":"https://r.example/a/-/a-1.0.0.tgz"},"node_modules/b":{` + good + `,"resolved":"https://evil.example/b/-/b-1.0.0.tgz"}`), "another host"},
		"git+ssh":                {lockOf(`"node_modules/a":{` + good + `,"resolved":"git+ssh://git@` + canary + `/a.git#abc"}`), "not a registry's"},
		"git https":              {lockOf(`"node_modules/a":{` + good + `,"resolved":"git+https://r.example/a.git"}`), "not a registry's"},
		"file":                   {lockOf(`"node_modules/a":{` + good + `,"resolved":"file:../` + canary + `"}`), "not a registry's"},
		"bare path":              {lockOf(`"node_modules/a":{` + good + `,"resolved":"../x"}`), "not a registry's"},
		"credential":             {lockOf(`"node_modules/a":{` + good + `,"resolved":"https://u:` + canary + `@r.example/a/-/a-1.0.0.tgz"}`), "credential"},
		"query":                  {lockOf(`"node_modules/a":{` + good + `,"resolved":"https://r.example/a/-/a-1.0.0.tgz?x=${TOKEN}"}`), "query"},
		"other package's bytes":  {lockOf(`"node_modules/a":{` + good + `,"resolved":"https://r.example/b/-/b-1.0.0.tgz"}`), "not the one of that package"},
		"other version's bytes":  {lockOf(`"node_modules/a":{` + good + `,"resolved":"https://r.example/a/-/a-2.0.0.tgz"}`), "not the one of that package"},
		"dots in the address":    {lockOf(`"node_modules/a":{` + good + `,"resolved":"https://r.example/x/../a/-/a-1.0.0.tgz"}`), "not the one of that package"},
		"link":                   {lockOf(`"node_modules/a":{"link":true,"resolved":"x"}`), "a link"},
		"upward key":             {lockOf(`"node_modules/../../x":{` + good + `}`), "a place that no package has"},
		"dot key":                {lockOf(`"node_modules/.bin":{` + good + `}`), "a place that no package has"},
		"nested node_modules":    {lockOf(`"node_modules/node_modules":{` + good + `}`), "a place that no package has"},
		"workspace key":          {lockOf(`"packages/x":{` + good + `}`), "outside of node_modules"},
		"absolute key":           {lockOf(`"/node_modules/x":{` + good + `}`), "outside of node_modules"},
		"back slash":             {lockOf(`"node_modules/a\\b":{` + good + `}`), "a place that no package has"},
		"range as version":       {lockOf(`"node_modules/a":{"version":"^1.0.0","integrity":"` + digest512 + `"}`), "exact version"},
		"address as version":     {lockOf(`"node_modules/a":{"version":"https://` + canary + `","integrity":"` + digest512 + `"}`), "exact version"},
		"git dependency below":   {lockOf(`"node_modules/a":{` + good + `,"dependencies":{"b":"git+ssh://` + canary + `"}}`), "neither a version"},
		"alias to a path":        {lockOf(`"node_modules/a":{` + good + `,"name":"../x"}`), "a name that no package has"},
		"command outside":        {lockOf(`"node_modules/a":{` + good + `,"bin":{"x":"../../` + canary + `"}}`), "outside of its package"},
		"command's name":         {lockOf(`"node_modules/a":{` + good + `,"bin":{"../x":"x.js"}}`), "outside of its package"},
		"bundled by nobody":      {lockOf(`"node_modules/a":{"version":"1.0.0","inBundle":true}`), "no package above"},
		"version 1":              {`{"lockfileVersion":1,"dependencies":{"a":{"version":"1.0.0"}}}`, "expected 2 or 3"},
		"no version":             {`{"packages":{}}`, "expected 2 or 3"},
		"version as text":        {`{"lockfileVersion":"4","packages":{}}`, "expected 2 or 3"},
		"no packages":            {`{"lockfileVersion":3}`, "packages"},
		"key twice":              {lockOf(`"node_modules/a":{` + good + `},"node_modules/a":{` + good + `}`), "twice"},
		"case twin":              {lockOf(`"node_modules/a":{` + good + `},"node_modules/A":{` + good + `}`), "twice"},
		"not an object":          {`[]`, "expected an object"},
		"not JSON":               {`{"lockfileVersion":3,` + canary, "not JSON"},
		"second document":        {`{"lockfileVersion":3,"packages":{}}{}`, "not JSON"},
		"deep":                   {`{"lockfileVersion":3,"packages":` + strings.Repeat(`{"a":`, 40) + `1` + strings.Repeat(`}`, 40) + `}`, "not JSON"},
		"root asks for an url":   {`{"lockfileVersion":3,"packages":{"":{"dependencies":{"a":"https://` + canary + `"}}}}`, "neither a version"},
		"entry is not an object": {lockOf(`"node_modules/a":"` + canary + `"`), "expected an object"},
	} {
		t.Run(name, func(t *testing.T) {
			refused := refusal(t, npmInput(`{"dependencies":{"a":"^1.0.0"}}`, row.lock))
			if !strings.Contains(refused.Error(), row.want) {
				t.Errorf("refused with %q, want %q", refused.Error(), row.want)
			}
			if refused.File != lockFile {
				t.Errorf("it names the file %q", refused.File)
			}
		})
	}
}

func TestHostilePackageFiles(t *testing.T) {
	for name, row := range map[string]struct{ src, want string }{
		"git":               {`{"dependencies":{"a":"git+ssh://git@` + canary + `/a"}}`, "neither a version"},
		"github short form": {`{"dependencies":{"a":"someone/` + canary + `"}}`, "neither a version"},
		"address":           {`{"dependencies":{"a":"https://` + canary + `/a.tgz"}}`, "neither a version"},
		"file":              {`{"dependencies":{"a":"file:../a"}}`, "neither a version"},
		"link":              {`{"dependencies":{"a":"link:../a"}}`, "neither a version"},
		"path":              {`{"dependencies":{"a":"../a"}}`, "neither a version"},
		"home":              {`{"dependencies":{"a":"~/a"}}`, "neither a version"},
		"workspace":         {`{"dependencies":{"a":"workspace:*"}}`, "neither a version"},
		"variable":          {`{"dependencies":{"a":"${` + canary + `}"}}`, "neither a version"},
		"alias to git":      {`{"dependencies":{"a":"npm:x@git+ssh://h/r"}}`, "neither a version"},
		"alias to a path":   {`{"dependencies":{"a":"npm:../x@1"}}`, "neither a version"},
		"name is a path":    {`{"dependencies":{"../a":"1"}}`, "a name that no package has"},
		"name is an option": {`{"dependencies":{"--registry=x":"1"}}`, "a name that no package has"},
		"optional git":      {`{"optionalDependencies":{"a":"git://h/r"}}`, "neither a version"},
		"peer address":      {`{"peerDependencies":{"a":"http://h/r"}}`, "neither a version"},
		"override to git":   {`{"dependencies":{"a":"1"},"overrides":{"b":"git://h/r"}}`, "neither a version"},
		"override nested":   {`{"dependencies":{"a":"1"},"overrides":{"a":{"b":{"c":"file:x"}}}}`, "neither a version"},
		"override's name":   {`{"dependencies":{"a":"1"},"overrides":{"../x":"1"}}`, "a name that no package has"},
		"workspaces":        {`{"workspaces":["packages/*"]}`, "workspaces"},
		"bundled":           {`{"dependencies":{"a":"1"},"bundleDependencies":["a"]}`, "bundled"},
		"bundled, spelling": {`{"dependencies":{"a":"1"},"bundledDependencies":["a"]}`, "bundled"},
		"range is a number": {`{"dependencies":{"a":1}}`, "expected a range"},
		"list":              {`{"dependencies":["a"]}`, "expected an object"},
		"twice":             {`{"dependencies":{"a":"1"},"dependencies":{"a":"git://x"}}`, "twice"},
		"not JSON":          {`{"dependencies":{"a":"1"}}` + canary, "not JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			if refused := refusal(t, npmInput(row.src, "")); !strings.Contains(refused.Error(), row.want) {
				t.Errorf("refused with %q, want %q", refused.Error(), row.want)
			}
		})
	}
}

// TestHostileRequirements are the rows of H25.
func TestHostileRequirements(t *testing.T) {
	hash := " --hash=sha256:" + strings.Repeat("a", 64)
	for name, line := range map[string]string{
		"no binary":              "--no-binary :all:",
		"index":                  "-i https://" + canary,
		"index, long":            "--index-url=https://" + canary,
		"extra index":            "--extra-index-url https://" + canary,
		"another list":           "-r /etc/passwd",
		"another list, joined":   "-r/etc/passwd",
		"constraints":            "-c " + canary,
		"editable":               "-e ./src",
		"folder":                 "./src",
		"wheel":                  "./x.whl",
		"wheel by name":          "x-1.0-py3-none-any.whl",
		"address":                "x @ https://e/${" + canary + "}",
		"address alone":          "https://e/x.whl",
		"git":                    "git+https://e/x#egg=x",
		"version and address":    "x==1 @ https://e/",
		"range with a hash":      "x>=1" + hash,
		"two versions and hash":  "x==1,!=2" + hash,
		"sha1":                   "x==1 --hash=sha1:" + strings.Repeat("a", 40),
		"md5":                    "x==1 --hash=md5:" + strings.Repeat("a", 32),
		"option on a line":       "x==1 --global-option=" + canary,
		"install option":         "x==1 --install-option=--prefix=/",
		"option in a condition":  "x==1 ; python_version > '3 --global-option=x'",
		"unknown condition":      "x==1 ; evil(" + canary + ")",
		"open condition":         "x==1 ;",
		"continued option":       "x==1 \\\n  --no-binary :all:",
		"continued name":         "x==1 \\\n-r /etc/passwd",
		"variable":               "x==${" + canary + "}",
		"white space in name":    "x y==1",
		"tab before an option":   "x==1\t-e ./src",
		"find links":             "-f ./wheels",
		"pre-releases":           "--pre",
		"trusted host":           "--trusted-host e",
		"NUL":                    "x==1\x00",
		"not UTF-8":              "x==1\xff",
		"hash behind a comment":  "x==1 --hash=sha256:" + strings.Repeat("a", 63) + " # " + canary,
		"one of two has no hash": "y==1\nx==1" + hash,
		"extras with a path":     "x[../a]==1",
		"carriage return":        "x==1\r-e ./src",
		"form feed before":       "x==1\f-e ./src",
		"upper case hash":        "x==1 --hash=sha256:" + strings.Repeat("A", 64),
	} {
		t.Run(name, func(t *testing.T) {
			refused := refusal(t, Input{Files: map[string][]byte{requiredFile: []byte("ok==1" + hash + "\n" + line + "\n")}, Command: "python3"})
			if refused.Line == 0 && !strings.Contains(refused.Error(), "UTF-8") {
				t.Errorf("it does not name the line: %v", refused)
			}
		})
	}
}

func TestRequirementsThatSurvive(t *testing.T) {
	h1, h2 := strings.Repeat("1", 64), strings.Repeat("2", 64)
	src := "\ufeff# a comment -r /etc/passwd\r\n" +
		"Requests[socks , security] == 2.31.0 ; python_version>=\"3.8\" and (sys_platform != 'win32') \\\r\n" +
		"    --hash=sha256:" + h2 + " \\\n    --hash=sha256:" + h1 + "  # why\n\n" +
		"plain.name===1.0+local --hash=sha256:" + h1 + "\n"
	sets, err := Read(Input{Files: map[string][]byte{requiredFile: []byte(src)}, Command: "python3"})
	if err != nil {
		t.Fatal(err)
	}
	want := "Requests[socks,security]==2.31.0 ; python_version >= \"3.8\" and ( sys_platform != 'win32' ) \\\n    --hash=sha256:" + h1 + " \\\n    --hash=sha256:" + h2 + "\n"
	got := string(sets[0].files[requiredFile])
	if !strings.HasPrefix(got, want) {
		t.Errorf("pip would be given\n%s\nwant\n%s", got, want)
	}
}

func TestRequirementsWithoutHashes(t *testing.T) {
	sets, err := Read(Input{Files: map[string][]byte{requiredFile: []byte("requests>=2,<3\nhttpx ~= 0.27\nsix\n")}, Command: "python3"})
	if err != nil || len(sets) != 1 {
		t.Fatal(sets, err)
	}
	s := sets[0]
	if got := string(s.files[requiredFile]); s.Locked || s.Why == "" || s.Packages != nil || got != "requests>=2,<3\nhttpx~=0.27\nsix\n" {
		t.Errorf("locked %t, why %q, packages %v, file %q", s.Locked, s.Why, s.Packages, got)
	}
}

// TestLockIsWrittenAnew: what is written holds nothing that was not understood, no
// address, and nothing that only development needs.
func TestLockIsWrittenAnew(t *testing.T) {
	entry := func(more string) string {
		return `{"version":"1.0.0","integrity":"sha1-x ` + digest512 + `"` + more + `}`
	}
	lock := lockOf(`"node_modules/a":` + entry(`,"resolved":"https://r.example/a/-/a-1.0.0.tgz","license":"MIT","funding":{"url":"`+canary+`"},"dependencies":{"b":"^1"},"bin":{"a":"./cli.js"},"hasInstallScript":true,"engines":{"node":">=1"}`) +
		`,"node_modules/b":` + entry(`,"os":["linux"],"cpu":["!arm"],"peerDependencies":{"p":"*"},"peerDependenciesMeta":{"p":{"optional":true}}`) +
		`,"node_modules/b/node_modules/@s/c":` + entry(`,"optional":true`) +
		`,"node_modules/test-only":` + entry(`,"dev":true`) + `,"node_modules/needless":` + entry(`,"extraneous":true`))
	sets, err := Read(npmInput(`{"name":"x","scripts":{"preinstall":"`+canary+`"},"dependencies":{"a":"^1.0.0"},"devDependencies":{"test-only":"git://x"},"engines":{"node":">=18"}}`, lock))
	if err != nil {
		t.Fatal(err)
	}
	s := sets[0]
	if !s.Locked || s.Engine != ">=18" || fmt.Sprint(s.Scripts()) != "[a@1.0.0]" || len(s.Packages) != 3 {
		t.Errorf("read %+v", s)
	}
	for name, data := range s.files {
		for _, stray := range []string{canary, "resolved", "r.example", "license", "test-only", "needless", "scripts\"", "sha1"} {
			if strings.Contains(string(data), stray) {
				t.Errorf("%s holds %q:\n%s", name, stray, data)
			}
		}
	}
	for _, kept := range []string{`"hasInstallScript": true`, `"!arm"`, `"optional": true`, digest512, `"a": "cli.js"`} {
		if !strings.Contains(string(s.files[lockFile]), kept) {
			t.Errorf("the lock lost %s:\n%s", kept, s.files[lockFile])
		}
	}
}

func TestLocksThatDoNotFit(t *testing.T) {
	good := `"version":"1.0.0","integrity":"` + digest512 + `"`
	for name, lock := range map[string]string{
		"for another package.json": `{"lockfileVersion":2,"packages":{"":{"dependencies":{"a":"^2.0.0"}},"node_modules/a":{` + good + `}}}`,
		"package is missing":       lockOf(`"node_modules/b":{` + good + `}`),
		"need is missing":          lockOf(`"node_modules/a":{` + good + `,"dependencies":{"b":"1"}}`),
	} {
		t.Run(name, func(t *testing.T) {
			sets, err := Read(npmInput(`{"dependencies":{"a":"^1.0.0"}}`, lock))
			if err != nil || sets[0].Locked || !strings.Contains(sets[0].Why, "out of step") {
				t.Errorf("%+v, %v", sets, err)
			}
		})
	}
}

func TestErrorText(t *testing.T) {
	refused := refusal(t, npmInput("{\n  \"dependencies\": {\n    \"a\": \"file:../a\"\n  }\n}", ""))
	want := `reading the dependencies: "package.json" line 3 (dependencies): it is neither a version nor a range of versions nor a tag; addresses, repositories, files, folders and workspaces are not taken`
	if refused.Error() != want {
		t.Errorf("%s\nwant\n%s", refused, want)
	}
	build := (&BuildError{Ecosystem: NPM, Kind: Mismatch, Detail: "EINTEGRITY"}).Error()
	if want := "installing packages with npm: the bytes from the registry do not match their digest: EINTEGRITY"; build != want {
		t.Errorf("%s\nwant\n%s", build, want)
	}
}

func TestNPX(t *testing.T) {
	for _, row := range []struct {
		args                     string
		asked, pkg, bin, started string
		refused                  bool
	}{
		{args: "-y firecrawl-mcp", asked: "firecrawl-mcp latest", pkg: "firecrawl-mcp"},
		{args: "--yes @s/x@1.2.3 stdio --port 1", asked: "@s/x 1.2.3", pkg: "@s/x", started: "stdio --port 1"},
		{args: "x@^2", asked: "x ^2", pkg: "x"},
		{args: "-y -p @s/x@1 run -v", asked: "@s/x 1", pkg: "@s/x", bin: "run", started: "-v"},
		{args: "--package=x run", asked: "x latest", pkg: "x", bin: "run"},
		{args: "-y -- x -z", asked: "x latest", pkg: "x", started: "-z"},
		{args: "-y", refused: true},
		{args: "-c echo", refused: true},
		{args: "--registry=http://e x", refused: true},
		{args: "-y git+ssh://e/x", refused: true},
		{args: "-y ./x", refused: true},
		{args: "-y someone/x", refused: true},
		{args: "-y https://e/x.tgz", refused: true},
		{args: "-p a -p b run", refused: true},
		{args: "-p a ../run", refused: true},
	} {
		t.Run(row.args, func(t *testing.T) {
			in := Input{Command: "npx", Args: strings.Fields(row.args), Listed: []string{"ignored"}}
			if row.refused {
				refusal(t, in)
				return
			}
			sets, err := Read(in)
			if err != nil || len(sets) != 1 {
				t.Fatal(sets, err)
			}
			s := sets[0]
			if s.Asked[0] != row.asked || s.Start.Package != row.pkg || s.Start.Bin != row.bin || strings.Join(s.Start.Args, " ") != row.started {
				t.Errorf("%v %+v", s.Asked, s.Start)
			}
		})
	}
}

func TestListed(t *testing.T) {
	for _, row := range []struct {
		command string
		listed  []string
		want    string // file that npm or pip is given holds it; "" = refused
	}{
		{"node", []string{"zod", "@s/x@^1.2", "y >=2"}, `"@s/x": "^1.2"`},
		{"python3", []string{"httpx>=0.27", "six==1.16.0"}, "httpx>=0.27\nsix==1.16.0\n"},
		{"node", []string{"git+ssh://e/x"}, ""},
		{"python3", []string{"-r x"}, ""},
		{"python3", []string{"six\n-e ./src"}, ""},
		{"deno-like", []string{"six"}, ""},
	} {
		in := Input{Command: row.command, Listed: row.listed}
		if row.want == "" {
			refusal(t, in)
			continue
		}
		sets, err := Read(in)
		if err != nil {
			t.Fatal(err)
		}
		all := string(sets[0].files[packageFile]) + string(sets[0].files[requiredFile])
		if !strings.Contains(all, row.want) || sets[0].Locked || !strings.Contains(sets[0].From, "list") {
			t.Errorf("%v gives %s", row.listed, all)
		}
	}
	if sets, err := Read(Input{Command: "node"}); err != nil || sets != nil {
		t.Errorf("nothing asked for gives %v, %v", sets, err)
	}
}

func TestKeyHangsOnEverything(t *testing.T) {
	read := func(src string) Set {
		sets, err := Read(npmInput(src, ""))
		if err != nil {
			t.Fatal(err)
		}
		return sets[0]
	}
	tool := &Tool{Interpreter: Interpreter{Version: "20.1.0"}, Platform: "linux-amd64"}
	base := read(`{"dependencies":{"a":"1.0.0"}}`).Key(tool, false)
	if again := read(`{"name":"other","dependencies": {"a":"1.0.0"}}`).Key(tool, false); again != base {
		t.Error("what does not count changed the key")
	}
	for name, key := range map[string]string{
		"bumped pin": read(`{"dependencies":{"a":"1.0.1"}}`).Key(tool, false),
		"scripts":    read(`{"dependencies":{"a":"1.0.0"}}`).Key(tool, true),
		"runtime":    read(`{"dependencies":{"a":"1.0.0"}}`).Key(&Tool{Interpreter: Interpreter{Version: "22.1.0"}, Platform: "linux-amd64"}, false),
		"platform":   read(`{"dependencies":{"a":"1.0.0"}}`).Key(&Tool{Interpreter: Interpreter{Version: "20.1.0"}, Platform: "darwin-arm64"}, false),
	} {
		if key == base || len(key) != 64 {
			t.Errorf("%s: key %s", name, key)
		}
	}
}
