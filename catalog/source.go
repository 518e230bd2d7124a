package catalog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"skald-connectors/internal/exactjson"
	"skald-connectors/manifest"
)

// maxListBytes holds 100,000 ids of the greatest length.
const maxListBytes = 8 << 20

// maxDepth is the nesting of the deepest member that format.md, section 1, accepts in an entry, plus the two levels
// around an entry in the index.
const maxDepth = 10

// Rules of package manifest that this package knows by name: two are found here first, in the source, before the entry
// is compiled from it; one is the only concern that keeps a connector from being published.
const (
	ruleRepeated        = "repeated-key"
	ruleCaseTwin        = "case-twin"
	ruleEntryNotShipped = "args-entry-not-shipped"
)

// connector is one line of index.json and all that was found for it.
type connector struct {
	id       string
	folder   string
	source   []byte // fragment.json
	fragment exactjson.Value
	files    []*file // sorted by path
	found    bool    // fragment.json is usable, so the folder was scanned
	entry    []byte  // the compiled entry, compact
	findings []Finding
}

// add records a finding of the connector; file is relative to its folder, empty for the folder itself.
func (c *connector) add(severity manifest.Severity, file, rule, format string, args ...any) {
	c.diagnose(manifest.Diagnostic{File: path.Join(c.folder, file), Severity: severity, Rule: rule, Message: fmt.Sprintf(format, args...)})
}

func (c *connector) diagnose(ds ...manifest.Diagnostic) {
	for _, d := range ds {
		c.findings = append(c.findings, Finding{Connector: c.id, Diagnostic: d})
	}
}

// errNotRegular is a file that is a link, a folder, a pipe or a device.
var errNotRegular = errors.New("not a regular file")

// tooLargeError is a file above its limit.
type tooLargeError struct{ limit int64 }

func (e *tooLargeError) Error() string { return fmt.Sprintf("larger than %d bytes", e.limit) }

// A missingError is a file that a tree has to have. It is an fs.ErrNotExist.
type missingError struct{ name string }

func (e *missingError) Error() string        { return "there is no " + e.name }
func (e *missingError) Is(target error) bool { return target == fs.ErrNotExist }

// readFile reads a file of the tree whole.
func readFile(root *os.Root, name string, limit int64) ([]byte, error) {
	switch fi, err := root.Lstat(name); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &missingError{name}
	case err != nil:
		return nil, err
	case !fi.Mode().IsRegular():
		return nil, errNotRegular
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	src, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(src)) > limit {
		err = &tooLargeError{limit}
	}
	return src, err
}

// aboutTree tells errors that the author mends from those of the machine.
func aboutTree(err error) bool {
	var large *tooLargeError
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotRegular) || errors.As(err, &large)
}

// readPublished reads the index that versions are compared with.
func (b *build) readPublished() error {
	if b.o.Against == nil {
		b.published = b.previous
		return nil
	}
	ix, _, err := manifest.ParseIndex(b.o.Against, false)
	if err != nil {
		return fmt.Errorf("reading the published index: %w", err)
	}
	b.published = ix
	return nil
}

// readPrevious reads the connectors.json that is there, if any.
func (b *build) readPrevious() error {
	src, err := readFile(b.root, indexName, manifest.MaxIndexBytes)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil && aboutTree(err):
		b.add(indexName, "previous-index-unreadable", "%v", err)
		return nil
	case err != nil:
		return err
	}
	b.previousBytes = src
	ix, _, err := manifest.ParseIndex(src, false)
	switch {
	case err != nil:
		b.add(indexName, "previous-index-unreadable", "the index that is there cannot be read, so versions cannot be compared with it: %v", err)
	case ix.Version > 1:
		b.add(indexName, "index-version-newer", "the index that is there has format version %d, this program writes 1", ix.Version)
	default:
		b.previous = ix
	}
	return nil
}

// readList reads index.json: the ids, in order.
func (b *build) readList() error {
	src, err := readFile(b.root, listName, maxListBytes)
	if err != nil {
		if aboutTree(err) && !errors.Is(err, fs.ErrNotExist) {
			b.add(listName, "list-unreadable", "%v", err)
			return nil
		}
		return err
	}
	list, _, err := exactjson.Parse(src, 2)
	if err != nil {
		b.add(listName, "list-unreadable", "%v", err)
		return nil
	}
	if list.Kind != exactjson.Array {
		b.add(listName, "list-unreadable", "expected a list of connector ids, found %v", list.Kind)
		return nil
	}
	seen := map[string]bool{}
	for i, item := range list.Items {
		if problem := listed(item, seen); problem != "" {
			line, col := exactjson.Position(src, item.Start)
			b.findings = append(b.findings, Finding{Connector: item.Str, Diagnostic: manifest.Diagnostic{File: listName, Path: fmt.Sprintf("[%d]", i), Line: line, Col: col,
				Severity: manifest.Error, Rule: "list-id", Message: problem}})
			continue
		}
		b.connectors = append(b.connectors, &connector{id: item.Str, folder: item.Str})
	}
	return nil
}

// listed says what is wrong with one element of index.json.
func listed(item exactjson.Value, seen map[string]bool) string {
	if item.Kind != exactjson.String {
		return fmt.Sprintf("expected a connector id, found %v", item.Kind)
	}
	if err := manifest.ValidID(item.Str); err != nil {
		return err.Error()
	}
	if seen[item.Str] { // a valid id has no upper case
		return fmt.Sprintf("%q stands in the list twice", item.Str)
	}
	seen[item.Str] = true
	return ""
}

// readFragment reads <id>/fragment.json and takes from it what the scan needs: the folder.
func (b *build) readFragment(c *connector) {
	src, err := readFile(b.root, c.id+"/"+fragmentName, manifest.MaxManifestBytes)
	if err != nil {
		c.add(manifest.Error, fragmentName, "fragment-unreadable", "%v", plain(err))
		return
	}
	c.source = src
	tree, repeats, err := exactjson.Parse(src, maxDepth)
	if err != nil {
		c.add(manifest.Error, fragmentName, "fragment-unreadable", "%v", err)
		return
	}
	if tree.Kind != exactjson.Object {
		c.add(manifest.Error, fragmentName, "fragment-unreadable", "expected an object, found %v", tree.Kind)
		return
	}
	c.fragment, c.found = tree, true
	for _, r := range repeats {
		rule, message := ruleRepeated, fmt.Sprintf("the key %q stands twice in one object", r.Key)
		if r.CaseTwin {
			rule, message = ruleCaseTwin, fmt.Sprintf("the key %q differs from another one in case only", r.Key)
		}
		c.place(r.Path, r.Second, rule, message)
	}
	if id, ok := tree.Get("id"); ok && id.Str != c.id {
		c.place("id", id.Start, "id-differs", fmt.Sprintf("the folder and index.json say %q, the fragment says %q", c.id, id.Str))
	}
	if own, ok := tree.Get("files"); ok {
		c.place("files", own.Start, "files-by-hand", "files is made from the folder's contents; take it out of the fragment")
	}
	if folder, ok := tree.Get("folder"); ok && folder.Kind == exactjson.String && folder.Str != "" {
		c.setFolder(folder)
	}
}

// setFolder takes the fragment's folder when it is a safe path.
func (c *connector) setFolder(v exactjson.Value) {
	const mostSegments = 3 // format.md, section 2: whatsapp/3
	if err := manifest.ValidPath(v.Str); err != nil || strings.Count(v.Str, "/") >= mostSegments {
		c.place("folder", v.Start, "folder-invalid", fmt.Sprintf("%q is not a folder of up to %d safe segments", v.Str, mostSegments))
		c.found = false
		return
	}
	c.folder = v.Str
}

// place records an error at a byte offset of fragment.json.
func (c *connector) place(jsonPath string, offset int, rule, message string) {
	line, col := exactjson.Position(c.source, offset)
	c.diagnose(manifest.Diagnostic{File: c.id + "/" + fragmentName, Path: jsonPath, Line: line, Col: col, Severity: manifest.Error, Rule: rule, Message: message})
}

// plain drops the operation from a path error: the finding names the file already.
func plain(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// findUnlisted names folders that look like connectors and are not in index.json.
func (b *build) findUnlisted() {
	known := map[string]bool{}
	for _, c := range b.connectors {
		known[c.id] = true
	}
	entries, err := fs.ReadDir(b.root.FS(), ".")
	if err != nil {
		return // the folder was opened; what matters in it is read by name
	}
	for _, e := range entries {
		if !e.IsDir() || known[e.Name()] {
			continue
		}
		if _, err := b.root.Lstat(e.Name() + "/" + fragmentName); err == nil {
			b.findings = append(b.findings, Finding{Connector: e.Name(), Diagnostic: manifest.Diagnostic{File: listName, Severity: manifest.Warning, Rule: "not-listed",
				Message: fmt.Sprintf("folder %q has a %s and is not in the list, so it is not published", e.Name(), fragmentName)}})
		}
	}
}
