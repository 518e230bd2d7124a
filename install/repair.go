package install

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"skald-connectors/internal/atomicfile"
	"skald-connectors/manifest"
)

// repair replaces the shipped files of a work folder that are not the shipped ones.
func (st *Stage) repair(dir *os.Root) error {
	version, err := st.version()
	if err != nil {
		return err
	}
	defer version.Close()
	for _, f := range st.files {
		why, _, err := checkFile(dir, f)
		if err != nil {
			return fmt.Errorf("reading %q: %w", f.Path, err)
		}
		if why == "" {
			continue
		}
		st.step("repair " + f.Path)
		if err := repairFile(dir, version, f, st.step); err != nil {
			return fmt.Errorf("repairing %q: %w", f.Path, atomicfile.Cause(err))
		}
	}
	return nil
}

func repairFile(dir, version *os.Root, f manifest.File, step func(string)) error {
	if err := clearWay(dir, f.Path); err != nil {
		return err
	}
	if err := makeParents(dir, f.Path); err != nil {
		return err
	}
	return place(dir, f.Path, step, func(out *os.File) error {
		return fill(out, f, fromRoot(version), filePrivate)
	})
}

// clearWay removes what stands where a file belongs and is none, and what stands for
// one of its folders and is none.
func clearWay(dir *os.Root, file string) error {
	parts := strings.Split(file, "/")
	for i := range parts {
		p := filepath.Join(parts[:i+1]...)
		fi, err := dir.Lstat(p)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if isFile := i == len(parts)-1; isFile && !fi.Mode().IsRegular() || !isFile && !fi.IsDir() {
			return removeTree(dir, p)
		}
	}
	return nil
}

// place writes a file beside its place, durably, and renames it there. The temporary file
// stands at the top of the tree, under a name that is never carried over.
func place(dir *os.Root, file string, step func(string), write func(out *os.File) error) error {
	temp := tempPrefix + newToken()
	out, err := dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, filePrivate)
	if err != nil {
		return err
	}
	err = write(out)
	if err == nil {
		err = out.Sync()
	}
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		step("place " + file)
		err = dir.Rename(temp, filepath.FromSlash(file))
	}
	if err != nil {
		dir.Remove(temp)
	}
	return err
}

// unfinished says that a name is one of ours for what is not whole.
func unfinished(name string) bool {
	return strings.HasPrefix(name, stagePrefix) || strings.HasPrefix(name, trashPrefix) || strings.HasPrefix(name, tempPrefix)
}

// removeTemps removes what a killed process left at the top of a work or state
// folder.
func removeTemps(dir *os.Root) error {
	entries, err := list(dir)
	for _, e := range entries {
		if unfinished(e.Name()) {
			err = errors.Join(err, removeTree(dir, e.Name()))
		}
	}
	return err
}

func syncDirs(dir *os.Root) error {
	if err := syncTree(dir); err != nil {
		return fmt.Errorf("writing the files: %w", atomicfile.Cause(err))
	}
	return nil
}

// copyBytes copies an open file that may grow while it is read, at most limit bytes.
func copyBytes(out io.Writer, in io.Reader, limit int64) (int64, error) {
	n, err := io.Copy(out, io.LimitReader(in, limit+1))
	if err == nil && n > limit {
		err = errTooMuch
	}
	return n, err
}
