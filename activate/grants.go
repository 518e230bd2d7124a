package activate

import (
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"slices"

	"skald-connectors/sandbox"
)

// AccessError says that a grant opens nothing on this machine (exit 2).
type AccessError struct {
	Access Access
	Why    string
}

func (e *AccessError) Error() string { return fmt.Sprintf("granting %s: %s", e.Access, e.Why) }

// checkGrants refuses, before anything is fetched or changed, what the user grants and
// could not be given: what is not there, and what a back end would refuse at the start.
// Errors: *AccessError, *sandbox.UnenforceableError.
func (a *Activator) checkGrants(mode string, grants []Access) error {
	if len(grants) == 0 {
		return nil
	}
	p := sandbox.Policy{Hidden: []string{a.Home}}
	for _, x := range grants {
		if why := a.notHere(x); why != "" {
			return &AccessError{Access: x, Why: why}
		}
		grant(&p, x, a)
	}
	box, err := a.OpenSandbox(mode)
	if err != nil {
		return err
	}
	return box.Check(p)
}

// notHere says why there is nothing that x could open, "" where there is.
func (a *Activator) notHere(x Access) string {
	switch x.Kind {
	case "read", "write":
		if _, err := os.Stat(x.Value); err != nil {
			return "there is no such file or folder"
		}
	case "agent":
		socket := agentSocket(a)
		if socket == "" {
			return agentVariable + " is not set, so there is no SSH agent"
		}
		if fi, err := os.Stat(socket); err != nil || fi.Mode()&fs.ModeSocket == 0 {
			return fmt.Sprintf("%s names %q, where there is no socket", agentVariable, socket)
		}
	}
	return ""
}

// sayIdle tells of each grant and each withholding of the user's that changes
// nothing, now that all values are known: they believe in an effect.
func (a *Activator) sayIdle(t *trial, grants, withheld []Access) {
	if t.manifest.Remote() {
		if len(grants)+len(withheld) > 0 && t.manifest.Verify == nil {
			a.say("note: --grant and --withhold have no effect: nothing of it runs on this machine")
		}
		return
	}
	if len(withheld) > 0 && t.box.Enforced(sandbox.Policy{}).Mode == sandbox.None {
		a.say("note: --withhold holds nothing without a sandbox")
	}
	with := t.policy(a)
	idle := func(list *[]Access, x Access) bool {
		kept := *list
		defer func() { *list = kept }()
		*list = slices.DeleteFunc(slices.Clone(kept), func(y Access) bool { return y == x })
		return reflect.DeepEqual(t.policy(a), with)
	}
	for _, x := range grants {
		if idle(&t.grants, x) {
			a.say("note: --grant %s has no effect: it is allowed already, or withheld", x)
		}
	}
	for _, x := range withheld {
		if idle(&t.withheld, x) {
			a.say("note: --withhold %s has no effect: it is not among what this connector may do", x)
		}
	}
}
