package main

import (
	"time"

	"github.com/spf13/cobra"
)

// depsTimeout is the time that npm and pip have, unless a flag says otherwise.
const depsTimeout = 300 * time.Second

// agreeFlags are the agreements that install, upgrade and apply take in place of a
// person's.
type agreeFlags struct{ yes, noVerify, allowOther bool }

// register declares them; yes says what --yes agrees to.
func (g *agreeFlags) register(c *cobra.Command, yes string) {
	f := c.Flags()
	f.BoolVarP(&g.yes, "yes", "y", false, yes)
	f.BoolVar(&g.noVerify, "no-verify", false, "do not run the connector's verify command")
	f.BoolVar(&g.allowOther, "allow-command", false, "agree to a command that is not one of the usual runtimes")
}

// depsLimit is how long npm and pip may take.
type depsLimit struct{ depsTimeout time.Duration }

func (g *depsLimit) register(c *cobra.Command) {
	c.Flags().DurationVar(&g.depsTimeout, "deps-timeout", depsTimeout, "time limit of npm and pip (`TIME`, such as 90s or 10m)")
	c.Flags().Lookup("deps-timeout").DefValue = "5m"
}

func (g *depsLimit) check() error {
	if g.depsTimeout <= 0 {
		return usagef("--deps-timeout has to be more than nothing")
	}
	return nil
}

// packageFlags say how the packages of a connector are installed.
type packageFlags struct {
	depsLimit
	noDeps, scripts bool
}

func (g *packageFlags) register(c *cobra.Command) {
	g.depsLimit.register(c)
	f := c.Flags()
	f.BoolVar(&g.noDeps, "no-deps", false, "do not install dependencies; they are here already")
	f.BoolVar(&g.scripts, "allow-scripts", false, "let install scripts of packages run, and packages be built from source")
}

// registerExpired declares the flag that goes with --bundle.
func registerExpired(c *cobra.Command, expired *bool) {
	c.Flags().BoolVar(expired, "allow-expired", false, "with --bundle: take its index although it has run out")
}
