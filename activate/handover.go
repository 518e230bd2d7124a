package activate

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"skald-connectors/internal/atomicfile"
	"skald-connectors/internal/lazyre"
	"skald-connectors/login"
	"skald-connectors/manifest"
)

// secretsToken stands for the folder of a delivered file, in auth.deliver.path and then in mcp_config.env (format.md section 7).
const secretsToken = "{secrets}"

// handover is a credential in a file, for one start of a server: a folder of its own in the home that the server sees, with a lock
// that ends with this process. Whoever makes the next one removes those that nobody holds. The server, and every other session of
// its connector, can put links in the place of all that is in that home, so nothing there is reached by a path: root is the folder
// as it was made, and above is state/NAME, which they cannot replace.
type handover struct {
	dir, file   string // as the server is told
	name        string // of the file
	rel         string // of the folder below above
	format      string
	root, above *os.Root
	release     func()
}

// placeOfHandovers is below state/NAME.
const placeOfHandovers = "home/.credentials"

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
	home := a.connectorHome(t.name)
	if err := atomicfile.PrivateDir(home); err != nil {
		return nil, err
	}
	above, err := os.OpenRoot(filepath.Dir(home))
	if err != nil {
		return nil, fmt.Errorf("delivering the sign-in of %q: %w", t.name, err)
	}
	a.sweepHandovers(t.name, above)
	own := strings.ToLower(rand.Text())
	h := &handover{name: name, rel: placeOfHandovers + "/" + own, format: t.manifest.Auth.Deliver.Format, above: above}
	h.dir = filepath.Join(filepath.Dir(home), filepath.FromSlash(h.rel))
	h.file = filepath.Join(h.dir, name)
	free := false
	if h.release, free, err = a.lockHandover(t.name, own); err == nil && !free {
		err = errors.New("its folder is in use")
	}
	if err == nil {
		err = h.make()
	}
	if err == nil {
		err = h.write(*t.values.cred)
	}
	if err != nil {
		h.remove()
		return nil, fmt.Errorf("delivering the sign-in of %q: %w", t.name, err)
	}
	return h, nil
}

// lockHandover takes the lock of one folder, which is out of the connector's reach; release takes its file away.
func (a *Activator) lockHandover(name, own string) (release func(), free bool, err error) {
	path, err := a.Store.OwnLock("handover-" + name + "-" + own)
	if err != nil {
		return nil, false, err
	}
	unlock, free, err := atomicfile.TryLock(path)
	if err != nil || !free {
		return nil, free, err
	}
	return func() { _ = os.Remove(path); unlock() }, true, nil
}

func (h *handover) make() (err error) {
	if err = h.above.MkdirAll(placeOfHandovers, 0o700); err == nil {
		err = h.above.Mkdir(h.rel, 0o700)
	}
	if err == nil {
		h.root, err = h.above.OpenRoot(h.rel)
	}
	return err
}

func (h *handover) write(cred login.Credential) error {
	secret, err := cred.Deliver(h.format)
	if err != nil {
		return err
	}
	temp := ".new-" + strings.ToLower(rand.Text())
	f, err := h.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(secret.Reveal())
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = h.root.Rename(temp, h.name) // over a link, and not to where it leads
	}
	if err != nil {
		_ = h.root.Remove(temp)
	}
	return err
}

// remove takes file and folder away; a nil handover has none. What stays, the next one removes.
func (h *handover) remove() {
	if h == nil {
		return
	}
	if h.root != nil {
		_ = h.root.Remove(h.name) // also where the folder has another name by now
		_ = h.root.Close()
	}
	if h.release != nil {
		_ = h.above.RemoveAll(h.rel)
		h.release()
	}
	_ = h.above.Close()
}

// folder is what {secrets} means; "" = nothing.
func (h *handover) folder() string {
	if h == nil {
		return ""
	}
	return h.dir
}

// sweepHandovers removes what killed processes left.
func (a *Activator) sweepHandovers(name string, above *os.Root) {
	place, err := above.OpenFile(placeOfHandovers, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe in its place keeps nobody waiting
	if err != nil {
		return
	}
	defer place.Close()
	entries, _ := place.ReadDir(handoversAtOnce)
	for _, e := range entries {
		if !ownHandover.MatchString(e.Name()) {
			continue // the connector's
		}
		if release, free, err := a.lockHandover(name, e.Name()); err == nil && free {
			_ = above.RemoveAll(placeOfHandovers + "/" + e.Name())
			release()
		}
	}
}

// handoversAtOnce bounds what one start looks at: the connector can fill the folder.
const handoversAtOnce = 1000

// ownHandover is the name of a folder of ours: rand.Text in lower case.
var ownHandover = lazyre.New(`^[a-z2-7]{26}$`)
