package packagetest

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Wheel makes a wheel of pure Python: its file name and its bytes. requires are lines
// as in a requirements file.
func Wheel(name, version string, files map[string]string, requires ...string) (file string, data []byte) {
	stem := strings.ReplaceAll(name, "-", "_") + "-" + version
	info := stem + ".dist-info/"
	all := maps.Clone(files)
	meta := fmt.Sprintf("Metadata-Version: 2.1\nName: %s\nVersion: %s\n", name, version)
	for _, r := range requires {
		meta += "Requires-Dist: " + r + "\n"
	}
	all[info+"METADATA"] = meta
	all[info+"WHEEL"] = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
	record := ""
	for _, name := range slices.Sorted(maps.Keys(all)) {
		sum := sha256.Sum256([]byte(all[name]))
		record += fmt.Sprintf("%s,sha256=%s,%d\n", name, base64.RawURLEncoding.EncodeToString(sum[:]), len(all[name]))
	}
	all[info+"RECORD"] = record + info + "RECORD,,\n"
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		w, err := z.Create(name)
		if err == nil {
			_, err = w.Write([]byte(all[name]))
		}
		if err != nil {
			panic(err)
		}
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	return stem + "-py3-none-any.whl", b.Bytes()
}

// Sdist makes a source distribution whose setup.py is the given text.
func Sdist(name, version, setup string) (file string, data []byte) {
	stem := name + "-" + version
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	t := tar.NewWriter(z)
	for file, text := range map[string]string{"setup.py": setup, "PKG-INFO": fmt.Sprintf("Metadata-Version: 1.0\nName: %s\nVersion: %s\n", name, version)} {
		if err := t.WriteHeader(&tar.Header{Name: stem + "/" + file, Mode: 0o644, Size: int64(len(text))}); err != nil {
			panic(err)
		}
		if _, err := t.Write([]byte(text)); err != nil {
			panic(err)
		}
	}
	if err := t.Close(); err != nil {
		panic(err)
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	return stem + ".tar.gz", b.Bytes()
}

// SHA256 is the digest of an archive, as pip's hashes have it.
func SHA256(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
