package fetch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// pointerFormat is the format number of cache/index/<host>.json, which this file owns.
const pointerFormat = 1

// A pointer says which bytes the cached index of a marketplace has. It is the commit: the files it names are written
// before it. Members that this program does not know are kept when it is written again.
type pointer struct {
	Format   int       `json:"format"`
	Location string    `json:"location"`
	Digest   string    `json:"digest"` // SHA-256 of the index, lower-case hex; the validators below are those of these bytes
	Size     int64     `json:"size"`
	ETag     string    `json:"etag,omitempty"`
	Modified string    `json:"last_modified,omitempty"`
	Fetched  time.Time `json:"fetched"`               // when the marketplace last confirmed these bytes
	Says     bool      `json:"says_signed,omitempty"` // the index calls itself signed, and nobody judged it

	rest map[string]json.RawMessage
}

func (p *pointer) validators() validators { return validators{p.ETag, p.Modified} }

// A newerError says that a newer program wrote the file; it is neither used nor overwritten.
type newerError struct{ format int }

func (e *newerError) Error() string {
	return fmt.Sprintf("it has format %d and this program knows %d: it was written by a newer version", e.format, pointerFormat)
}

// parsePointer reads a pointer. What cannot be read is nil: a cache can always be filled again.
func parsePointer(data []byte) (*pointer, error) {
	var p pointer
	var head struct {
		Format int `json:"format"`
	}
	if json.Unmarshal(data, &head) == nil && head.Format > pointerFormat {
		return nil, &newerError{head.Format}
	}
	if json.Unmarshal(data, &p) != nil || json.Unmarshal(data, &p.rest) != nil {
		return nil, nil
	}
	if p.Format != pointerFormat || !isDigest(p.Digest) || p.Size <= 0 {
		return nil, nil
	}
	return &p, nil
}

func (p *pointer) marshal() ([]byte, error) {
	known, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	all := map[string]json.RawMessage{}
	for k, v := range p.rest {
		all[k] = v
	}
	delete(all, "etag")
	delete(all, "last_modified")
	delete(all, "says_signed")
	if err := json.Unmarshal(known, &all); err != nil {
		return nil, err
	}
	out, err := json.MarshalIndent(all, "", "  ")
	return append(out, '\n'), err
}

// isDigest tells whether s is a SHA-256 in lower-case hex.
func isDigest(s string) bool {
	if len(s) != 64 {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
