package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"skald-connectors/form"
	"skald-connectors/mount"
)

type clientsOptions struct {
	all       bool
	configDir string
}

func (a *app) clientsCommand() *cobra.Command {
	o := &clientsOptions{}
	c := &cobra.Command{
		Use:     "clients",
		GroupID: "find",
		Short:   "List the MCP clients of this machine and what is mounted in them",
		Long: "clients shows which MCP clients are here, the file that each of them reads, and which\n" +
			"connectors are mounted there. --all lists every client that can be mounted into.",
		Example: "  skald-connectors clients\n  skald-connectors clients --all\n  skald-connectors clients --json",
		Args:    cobra.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return a.clients(o) },
	}
	c.Flags().BoolVar(&o.all, "all", false, "also those that are not here")
	c.Flags().StringVar(&o.configDir, "config-dir", "", "configuration folder of the engine (`DIR`, else "+configDirVariable+")")
	return c
}

// clientLine is one client as clients prints it.
type clientLine struct {
	ID       string       `json:"id"`
	Name     string       `json:"name"`
	Detected bool         `json:"detected"`
	Grade    string       `json:"grade"` // how sure its facts are: A, B or C
	Restart  bool         `json:"restart"`
	Files    []clientFile `json:"files"`
	Problem  string       `json:"problem,omitempty"`
}

// clientFile is one file of a client: Mounted are our activations in it, Other
// the names of entries that are not ours.
type clientFile struct {
	Path    string   `json:"path"`
	Exists  bool     `json:"exists"`
	Mounted []string `json:"mounted"`
	Other   []string `json:"other"`
	Problem string   `json:"problem,omitempty"`
}

func (a *app) clients(o *clientsOptions) error {
	home, err := a.home()
	if err != nil {
		return err
	}
	m, _, _, err := a.mounter(home)
	if err != nil {
		return err
	}
	lines := []clientLine{}
	for _, c := range m.Clients() {
		if o.all || a.json || c.Detected {
			lines = append(lines, lineOfClient(m, c, ""))
		}
	}
	if dir := orElse(o.configDir, a.getenv(configDirVariable)); dir != "" {
		lines = append(lines, lineOfClient(m, mount.Client{ID: mount.Engine, Name: "Engine", Detected: true, Grade: "A", Restart: true}, dir))
	}
	if a.json {
		return a.printJSON(map[string]any{"clients": lines})
	}
	if len(lines) == 0 {
		a.say("no MCP client was found on this machine; %s clients --all lists those that are known", program)
		return nil
	}
	return a.showClients(lines, o.all)
}

func lineOfClient(m *mount.Mounter, c mount.Client, configDir string) clientLine {
	line := clientLine{ID: c.ID, Name: c.Name, Detected: c.Detected, Grade: c.Grade, Restart: c.Restart, Files: []clientFile{}, Problem: c.Problem}
	states, err := m.Inspect(c.ID, configDir)
	if err != nil {
		line.Problem = err.Error()
		return line
	}
	for _, s := range states {
		f := clientFile{Path: s.File, Exists: s.Exists, Mounted: []string{}, Other: []string{}}
		if s.Err != nil {
			f.Problem = s.Err.Error()
		}
		for _, e := range s.Entries {
			if e.Activation != "" && !e.Elsewhere {
				f.Mounted = append(f.Mounted, e.Activation)
			} else {
				f.Other = append(f.Other, e.Name)
			}
		}
		line.Files = append(line.Files, f)
	}
	return line
}

func (a *app) showClients(lines []clientLine, all bool) error {
	var rows [][]string
	for _, l := range lines {
		if l.Problem != "" {
			rows = append(rows, []string{l.ID, l.Name, "", ""})
			continue
		}
		for _, f := range l.Files {
			mounted := strings.Join(f.Mounted, ", ")
			switch {
			case f.Problem != "":
				mounted = "cannot be read"
			case mounted == "" && all && !l.Detected:
				mounted = "(not here)"
			case mounted == "":
				mounted = "-"
			}
			rows = append(rows, []string{l.ID, l.Name, mounted, a.short(f.Path)})
		}
	}
	if err := a.table([]string{"CLIENT", "NAME", "MOUNTED", "FILE"}, rows); err != nil {
		return err
	}
	for _, l := range lines {
		for _, problem := range append([]string{l.Problem}, problemsOf(l)...) {
			if problem != "" {
				a.say("%s: %s", l.ID, form.Clean(problem))
			}
		}
	}
	if !slices.ContainsFunc(lines, func(l clientLine) bool {
		return slices.ContainsFunc(l.Files, func(f clientFile) bool { return len(f.Mounted) > 0 })
	}) {
		a.say("nothing is mounted; %s mount NAME does it", program)
	}
	return nil
}

func problemsOf(l clientLine) []string {
	var out []string
	for _, f := range l.Files {
		out = append(out, f.Problem)
	}
	return out
}

// completeClients offers the ids of clients, those that are here first.
func (a *app) completeClients(_ *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	home, err := a.home()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	m, _, _, err := a.mounter(home)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var here, rest []string
	for _, c := range append(m.Clients(), mount.Client{ID: mount.Engine, Name: "the engine's own catalogue"}) {
		text := fmt.Sprintf("%s\t%s", c.ID, c.Name)
		switch {
		case !strings.HasPrefix(c.ID, prefix):
		case c.Detected:
			here = append(here, text)
		default:
			rest = append(rest, text)
		}
	}
	return append(here, rest...), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}
