package activate

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"skald-connectors/internal/atomicfile"
	"skald-connectors/login"
	"skald-connectors/manifest"
)

// secretsToken stands for the folder of a delivered file, in auth.deliver.path and then in mcp_config.env (format.md section 7).
const secretsToken = "{secrets}"

// handover is a credential in a file, for one start of a server: a folder of its own in the home that the server sees, with a lock
// beside it that ends with this process. Whoever makes the next one removes those that nobody holds.
type handover struct {
	dir, file string
	format    string
	unlock    func()
}

// fileDelivery gives the file's name below the folder of a manifest that wants one; ok is false where it wants none, or one that
// is not below {secrets}.
func fileDelivery(m *manifest.Manifest) (name string, ok bool) {
	d := m.Auth.Deliver
	if d == nil || d.As != "file" || m.Remote() {
		return "", false
	}
	name, ok = strings.CutPrefix(d.Path, secretsToken+"/")
	return name, ok && filepath.IsLocal(name) && !strings.ContainsAny(name, "/\\:")
}

// handOver writes the credential where the manifest wants a file; nil where it wants none.
func (a *Activator) handOver(t *trial) (*handover, error) {
	name, ok := fileDelivery(t.manifest)
	if !ok || t.values.cred == nil {
		return nil, nil
	}
	place := filepath.Join(a.connectorHome(t.name), ".credentials")
	if err := atomicfile.PrivateDir(place); err != nil {
		return nil, err
	}
	sweepHandovers(place)
	h := &handover{dir: filepath.Join(place, strings.ToLower(rand.Text())), format: t.manifest.Auth.Deliver.Format}
	h.file = filepath.Join(h.dir, name)
	unlock, free, err := atomicfile.TryLock(h.dir + ".lock")
	if err != nil || !free {
		return nil, fmt.Errorf("delivering the sign-in of %q: its folder cannot be made: %w", t.name, err)
	}
	h.unlock = unlock
	if err = atomicfile.PrivateDir(h.dir); err == nil {
		err = h.write(*t.values.cred)
	}
	if err != nil {
		h.remove()
		return nil, err
	}
	return h, nil
}

func (h *handover) write(cred login.Credential) error {
	secret, err := cred.Deliver(h.format)
	if err != nil {
		return err
	}
	return atomicfile.Write(h.file, []byte(secret.Reveal()), 0o600)
}

// remove takes file and folder away; a nil handover has none.
func (h *handover) remove() {
	if h == nil {
		return
	}
	_ = os.RemoveAll(h.dir) // what stays, the next one removes
	_ = os.Remove(h.dir + ".lock")
	h.unlock()
}

// folder is what {secrets} means; "" = nothing.
func (h *handover) folder() string {
	if h == nil {
		return ""
	}
	return h.dir
}

// sweepHandovers removes what killed processes left.
func sweepHandovers(place string) {
	locks, err := filepath.Glob(filepath.Join(place, "*.lock"))
	if err != nil {
		return
	}
	for _, lock := range locks {
		if unlock, free, err := atomicfile.TryLock(lock); err == nil && free {
			_ = os.RemoveAll(strings.TrimSuffix(lock, ".lock"))
			_ = os.Remove(lock)
			unlock()
		}
	}
}
