package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"skald-connectors/activate"
	"skald-connectors/activate/record"
	"skald-connectors/connectors"
	"skald-connectors/fetch"
	"skald-connectors/form"
	"skald-connectors/install"
	"skald-connectors/keystore"
	"skald-connectors/sandbox"
)

// program is the prefix of everything that is said on standard error.
const program = "skald-connectors"

// version is set by the linker; a plain go build names the module's own.
var version = ""

// hooks are the seams that tests need and users do not have.
type hooks struct {
	step      func(string)
	now       func() time.Time
	builtin   fs.FS
	keychain  keystore.Keychain
	impatient bool          // wait for locks and writers of clients' files only shortly
	public    string        // in place of the public marketplace
	work      int           // scrypt's cost in place of the key store's own
	answer    time.Duration // in place of statusLimit
}

// run is the program: it returns the exit code. Inside a sandbox this program is
// its own helper, before anything else is looked at.
func run(ctx context.Context, args, env []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if code, handled := sandbox.Main(args); handled {
		return code
	}
	return runWith(ctx, args, env, stdin, stdout, stderr, hooks{now: time.Now, builtin: connectors.Tree()})
}

func runWith(ctx context.Context, args, env []string, stdin io.Reader, stdout, stderr io.Writer, h hooks) int {
	ctx, stop := withSignals(ctx, args)
	defer stop()
	out := &output{w: stdout}
	a := &app{environ: env, stdin: stdin, stdout: out, stderr: stderr, hooks: h}
	root := a.rootCommand(args)
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(out)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		err = out.err
	}
	return a.finish(err)
}

// app is one run: what it was given and the global flags.
type app struct {
	environ        []string
	stdin          io.Reader
	stdout, stderr io.Writer
	hooks          hooks

	homeFlag, indexFlag, keystoreFlag, color string
	json, noInput, quiet, verbose            bool

	progress *progress
	opened   *form.Terminal
	noted    map[string]bool // marketplaces of which the same was said once
	serving  string          // what run serves: one line says what ended it; "" = another command
}

// getenv looks a variable up in the environment that this run was given.
func (a *app) getenv(name string) string {
	for _, kv := range slices.Backward(a.environ) {
		if n, v, ok := strings.Cut(kv, "="); ok && n == name {
			return v
		}
	}
	return ""
}

func versionString() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// rootCommand makes the commands that these arguments can mean.
func (a *app) rootCommand(args []string) *cobra.Command {
	root := &cobra.Command{
		Use:   program,
		Short: "Install connectors for AI agents: verified, pinned, with their secrets out of sight",
		Long: "skald-connectors takes a connector (an MCP server with credentials) from a marketplace\n" +
			"to a working, verified tool inside whatever agent you use.",
		Example: "  skald-connectors search mail\n  skald-connectors info email\n  skald-connectors install email",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			return nil
		},
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceErrors: true, SilenceUsage: true,
		Version: versionString(),
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if cmd.Name() == "run" {
			a.serving = "NAME"
		}
		return &usageError{err.Error() + similar(nearFlags(cmd, err), "--"), cmd.CommandPath()}
	})
	root.PersistentPreRunE = func(*cobra.Command, []string) error { return a.checkFlags() }
	f := root.PersistentFlags()
	f.StringVar(&a.homeFlag, "home", "", "keep everything of this program below `DIR`")
	f.StringVar(&a.indexFlag, "index", "", "marketplace: an https `URL`, a folder, or builtin")
	f.StringVar(&a.keystoreFlag, "keystore", "", "where the key of your secrets is kept: keychain, passphrase or keyfile (`PLACE`)")
	f.BoolVar(&a.json, "json", false, "print one JSON document in place of text")
	f.BoolVar(&a.noInput, "no-input", false, "never ask; fail and name the flag that would have answered")
	f.BoolVarP(&a.quiet, "quiet", "q", false, "say only results and errors")
	f.BoolVarP(&a.verbose, "verbose", "v", false, "say more about what is done")
	f.StringVar(&a.color, "color", "auto", "colours: auto, always or never (`WHEN`)")
	root.AddGroup(&cobra.Group{ID: "find", Title: "Finding:"}, &cobra.Group{ID: "main", Title: "The main job:"}, &cobra.Group{ID: "publish", Title: "For those who publish:"})
	commands := a.commands(args)
	root.AddCommand(commands...)
	root.CompletionOptions.DisableDefaultCmd = len(commands) == 1 // another one was asked for
	addDocs(root)
	a.fitHelp(root)
	for _, c := range root.Commands() {
		wrapArgs(c)
	}
	return root
}

// commands makes the one command that the first argument names, or all where it names none: making all takes as long as
// starting the process does.
func (a *app) commands(args []string) (all []*cobra.Command) {
	makers := []struct {
		name string
		make func() *cobra.Command
	}{
		{"search", a.searchCommand}, {"info", a.infoCommand}, {"list", a.listCommand}, {"outdated", a.outdatedCommand},
		{"install", a.installCommand}, {"configure", a.configureCommand}, {"verify", a.verifyCommand}, {"auth", a.authCommand},
		{"logout", a.logoutCommand}, {"secrets", a.secretsCommand}, {"uninstall", a.uninstallCommand},
		{"upgrade", a.upgradeCommand}, {"rollback", a.rollbackCommand}, {"pin", a.pinCommand}, {"unpin", a.unpinCommand},
		{"mount", a.mountCommand}, {"unmount", a.unmountCommand}, {"clients", a.clientsCommand}, {"seed", a.seedCommand},
		{"doctor", a.doctorCommand}, {"export", a.exportCommand}, {"apply", a.applyCommand},
		{"run", a.runCommand}, {"status", a.statusCommand}, {"tools", a.toolsCommand}, {"call", a.callCommand},
		{"logs", a.logsCommand}, {"unlock", a.unlockCommand},
		{"marketplace", a.marketplaceCommand}, {"bundle", a.bundleCommand}, {"catalog", a.catalogCommand},
		{"version", a.versionCommand}, {"exit-codes", exitCodesTopic},
	}
	for _, m := range makers {
		if len(args) > 0 && args[0] == m.name {
			return []*cobra.Command{m.make()}
		}
	}
	for _, m := range makers {
		all = append(all, m.make())
	}
	return all
}

// checkFlags refuses values that no command could use.
func (a *app) checkFlags() error {
	if !slices.Contains([]string{"auto", "always", "never"}, a.color) {
		return usagef("--color is auto, always or never, not %q", a.color)
	}
	if b := keystore.Backend(a.keystoreFlag); b != "" && !knownBackend(b) {
		return usagef("there is no key store %q; it is keychain, passphrase or keyfile", b)
	}
	return nil
}

func knownBackend(b keystore.Backend) bool {
	return b == keystore.BackendKeychain || b == keystore.BackendPassphrase || b == keystore.BackendKeyfile
}

// interactive tells whether a person sits at both ends: a prompt with only one
// of them would wait for ever, or be written into a file.
func (a *app) interactive() bool {
	if a.noInput || a.json || truthy(a.getenv("CI")) {
		return false
	}
	return isTerminal(a.stdin) && isTerminal(a.stdout)
}

func truthy(s string) bool { return s != "" && s != "0" && !strings.EqualFold(s, "false") }

// terminal opens the form's terminal, once; nil where nobody can be asked.
func (a *app) terminal() *form.Terminal {
	if a.opened != nil || !a.interactive() {
		return a.opened
	}
	in, out := fileOf(a.stdin), fileOf(a.stderr)
	if !isTerminal(out) {
		out = fileOf(a.stdout)
	}
	t, err := form.Open(in, out, form.Options{Term: a.getenv("TERM"), Accessible: truthy(a.getenv("ACCESSIBLE")), Color: a.colored(out), Home: a.getenv("HOME")})
	if err == nil {
		a.opened = t
	}
	return a.opened
}

func (a *app) colored(w io.Writer) bool {
	switch a.color {
	case "always":
		return true
	case "never":
		return false
	}
	return a.getenv("NO_COLOR") == "" && a.getenv("TERM") != "dumb" && isTerminal(w)
}

// say writes text for people to standard error, each line safe to show.
func (a *app) say(format string, args ...any) {
	if a.quiet {
		return
	}
	a.clearProgress()
	for line := range strings.SplitSeq(fmt.Sprintf(format, args...), "\n") {
		fmt.Fprintln(a.stderr, a.wrapped(form.Clean(line)))
	}
}

// sandboxModes are the words of --sandbox.
var sandboxModes = map[string]sandbox.Mode{
	"auto": sandbox.Auto, "bwrap": sandbox.Bubblewrap, "landlock": sandbox.Landlock, "container": sandbox.Container, "none": sandbox.None,
}

// checkSandbox refuses a word that is none of them.
func checkSandbox(mode string) error {
	if _, ok := sandboxModes[mode]; !ok {
		return usagef("--sandbox is auto, bwrap, landlock, container or none, not %q", mode)
	}
	return nil
}

// self is the path of this program, which is started again.
func (a *app) self() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding this program: %w", err)
	}
	return self, nil
}

// sandbox opens the sandbox of a mode; what was found out about the machine is
// kept below the home.
func (a *app) sandbox(home, mode string) (*sandbox.Sandbox, error) {
	self, err := a.self()
	if err != nil {
		return nil, err
	}
	return sandbox.Open(sandbox.Options{
		Mode: sandboxModes[mode], Self: self, Dir: filepath.Join(home, "sandbox"), Path: a.getenv("PATH"), Env: a.getenv,
		Image: a.getenv("SKALD_CONNECTORS_IMAGE"), User: orElse(a.getenv("USER"), "user"),
	})
}

// accessFlags are the user's changes to what a connector may do.
type accessFlags struct{ grant, withhold []string }

func (g *accessFlags) register(c *cobra.Command) {
	f := c.Flags()
	f.StringArrayVar(&g.grant, "grant", nil, "allow more than its manifest asks for: network=all, network=HOST:PORT, loopback, read=PATH, write=PATH, browser, agent (`ACCESS`, repeatable)")
	f.StringArrayVar(&g.withhold, "withhold", nil, "keep back something that its manifest asks for (`ACCESS`, repeatable)")
}

func (g *accessFlags) read() (grants, withheld []activate.Access, err error) {
	for _, list := range []struct {
		flag string
		from []string
		to   *[]activate.Access
	}{{"--grant", g.grant, &grants}, {"--withhold", g.withhold, &withheld}} {
		for _, text := range list.from {
			x, err := activate.ParseAccess(text)
			if err != nil {
				return nil, nil, usagef("%s: %v", list.flag, err)
			}
			*list.to = append(*list.to, x)
		}
	}
	return grants, withheld, nil
}

// activator builds what the flows work with, without touching the disk.
func (a *app) activator(home string) (*activate.Activator, error) {
	keys, err := a.keystore(home)
	if err != nil {
		return nil, err
	}
	act := &activate.Activator{
		Home: home, Store: install.Open(home).Watched(a.hooks.step), Keys: keys, OpenSandbox: func(mode string) (*sandbox.Sandbox, error) { return a.sandbox(home, mode) }, Environ: a.environ, Now: a.hooks.now,
		HTTP: activate.HTTPClient(fetch.Transport(a.getenv)), Step: a.hooks.step, Say: func(s string) { a.say("%s", s) }, Busy: a.busy,
		Single: append(homeNames(isSingle), "."), UserHome: a.userHome(), Packages: a.showPackages, Allowed: func(r *record.Record) error { return a.allowed(home, r) },
	}
	if t := a.terminal(); t != nil {
		act.Person = &person{app: a, term: t}
	}
	return act, nil
}
