package install

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"skald-connectors/internal/atomicfile"
)

// listTree digests what a tree holds: kind, name, size and whether it is a program.
// Links that leave the tree and special files are an error; nothing that a package
// registry brings has them.
func listTree(root *os.Root) (string, error) {
	h := sha256.New()
	err := fs.WalkDir(root.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == treeMarker || p == "." {
			return err
		}
		switch kind := d.Type(); {
		case kind.IsDir():
			fmt.Fprintf(h, "d %q\n", p)
		case kind.IsRegular():
			info, err := d.Info()
			if err != nil {
				return err
			}
			fmt.Fprintf(h, "f %q %d %t\n", p, info.Size(), info.Mode()&0o111 != 0)
		case kind&fs.ModeSymlink != 0:
			target, err := root.Readlink(p)
			if err != nil {
				return err
			}
			if escapes(p, target) {
				return fmt.Errorf("the link %q leaves its folder", p)
			}
			fmt.Fprintf(h, "l %q %q\n", p, target)
		default:
			return fmt.Errorf("%q is neither a file nor a folder", p)
		}
		return nil
	})
	if err != nil && errors.Is(err, fs.ErrPermission) {
		err = atomicfile.Cause(err)
	}
	return hex.EncodeToString(h.Sum(nil)), err
}
