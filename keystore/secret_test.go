package keystore

import (
	"bytes"
	"context"
	"encoding/gob"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

const canary = "CANARY-9f31c07e5d-value"

// exposed is how a careless caller may keep a Secret: in a field that fmt
// cannot call methods on.
type exposed struct {
	hidden Secret
	List   []Secret
	Map    map[string]Secret
	Any    any
	Ptr    *Secret
}

func TestSecretIsNeverPrinted(t *testing.T) {
	s := NewSecret(canary)
	h := Handle{Name: "A", Value: s, Secret: true}
	k, err := newKey()
	must(t, err)
	things := []any{
		s, &s, h, &h, []Handle{h}, map[string]Handle{"x": h}, exposed{s, []Secret{s}, map[string]Secret{"a": s}, s, &s}, &exposed{hidden: s},
		&vault{name: "a", handles: []Handle{h}}, NewRedactor([]Handle{{Name: "A", Value: NewSecret("other-" + canary)}}),
		Options{Dir: "d"}, struct{ s Secret }{s}, [1]Secret{s}, k, struct{ k *key }{k}, reflect.ValueOf(s),
	}
	for _, thing := range things {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%10.3s", "%T", "%p", "%c", "%U"} {
			checkHidden(t, fmt.Sprintf("%T %s", thing, verb), fmt.Sprintf(verb, thing), k)
		}
		var b bytes.Buffer
		for _, handler := range []slog.Handler{slog.NewJSONHandler(&b, nil), slog.NewTextHandler(&b, nil)} {
			slog.New(handler).Info("x", "thing", thing, slog.Any("group", slog.GroupValue(slog.Any("y", thing))))
		}
		j, _ := json.Marshal(thing)
		x, _ := xml.Marshal(thing)
		_ = gob.NewEncoder(&b).Encode(thing)
		b.Write(j)
		b.Write(x)
		checkHidden(t, fmt.Sprintf("%T encoded", thing), b.String(), k)
	}
	if got := fmt.Sprintf("%v|%q|%d|%s", s, s, s, Secret{}); got != "[redacted]|[redacted]|[redacted]|[redacted]" {
		t.Errorf("printed %s", got)
	}
}

func checkHidden(t *testing.T, what, text string, k *key) {
	t.Helper()
	hexed := fmt.Sprintf("%x", canary)
	lower := strings.ToLower(text)
	if strings.Contains(text, canary) || strings.Contains(lower, hexed) || strings.Contains(text, k.text()) {
		t.Errorf("%s shows it: %s", what, text)
	}
}

func TestSecretValue(t *testing.T) {
	var zero Secret
	s := NewSecret(canary)
	if s.Reveal() != canary || s.Len() != len(canary) || s.IsZero() || !zero.IsZero() || !NewSecret("").IsZero() || zero.Reveal() != "" {
		t.Error("value")
	}
	if !s.Equal(NewSecret(canary)) || s.Equal(zero) || !zero.Equal(NewSecret("")) {
		t.Error("equal")
	}
}

// TestErrorsHideValues makes every error that has a value near and looks for it.
func TestErrorsHideValues(t *testing.T) {
	ctx := context.Background()
	o := Options{Dir: filepath.Join(t.TempDir(), "keystore"), Want: BackendPassphrase, Passphrase: phrase(canary)}
	s := open(t, o)
	var errs []error
	note := func(err error) {
		if err == nil {
			t.Helper()
			t.Error("no error")
		}
		errs = append(errs, err)
	}
	hs := handles("A", canary)
	must(t, s.Put(ctx, "gmail", 1, hs))
	note(s.Put(ctx, "gmail", 1, handles("A", canary+"2")))
	note(s.Put(ctx, "gmail", 2, handles("A", canary+"\x00")))
	note(s.Put(ctx, "gmail", 2, handles("A", strings.Repeat(canary, 5000))))
	note(s.Put(ctx, "gmail", 2, handles("A", canary, "A", canary)))
	note(s.Update(ctx, "gmail", 1, func(hs []Handle) ([]Handle, error) { return append(hs, hs...), nil }))
	note(s.Update(ctx, "gmail", 1, func(hs []Handle) ([]Handle, error) { return hs, errors.New("mine") }))
	for _, plain := range []string{canary, `{"format":1,"name":"` + canary + `"}`, `{"format":1,"name":"gmail","generation":1,"counter":1,"handles":[{"name":"A","value":"` + canary + `"}]}`} {
		sealed(t, o, plain)
		_, err := s.Load(ctx, "gmail", 1)
		note(err)
	}
	o.Passphrase = phrase(canary + canary)
	note(open(t, o).Unlock(ctx))
	_, err := parseKey(canary)
	note(err)
	for _, err := range errs {
		for e := err; e != nil; e = errors.Unwrap(e) {
			checkHidden(t, "error", fmt.Sprintf("%v %+v %#v", e, e, e), &key{s.cached.id})
		}
	}
}

func FuzzVaultPayload(f *testing.F) {
	v := &vault{name: "gmail", gen: 3, counter: 7, handles: handles("A", "x\ny", "b.c-d", "\xff")}
	plain, err := v.plaintext()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(plain)
	f.Add([]byte(`{"format":1,"name":"a","generation":1,"counter":1,"x":{"y":[1]},"handles":[{"name":"A","value":"eA==","secret":false,"expires_at":"2027-01-01T00:00:00Z","l":1}]}`))
	f.Add([]byte(`{"format":2}`))
	f.Add([]byte(`{"format":1,"Format":1}`))
	f.Fuzz(func(t *testing.T, src []byte) {
		v, err := parseVault(src)
		if err != nil {
			return
		}
		once, err := v.plaintext()
		must(t, err)
		again, err := parseVault(once)
		if err != nil {
			t.Fatalf("%v: %s", err, once)
		}
		twice, err := again.plaintext()
		if err != nil || !bytes.Equal(once, twice) || !sameHandles(v.handles, again.handles) || again.counter != v.counter {
			t.Fatalf("%s\n%s", once, twice)
		}
	})
}

func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{"format":1,"backend":"keychain","recipient":"age1x","item":"vault-key-0","counters":{"gmail.1":2},"new":{"a":1}}`))
	f.Add([]byte(`{"format":1,"backend":"keyfile","recipient":"age1x","key_file":"vault.key","key_file_made":true}`))
	f.Add([]byte(`{"format":1,"backend":"passphrase","recipient":"age1x","wrapped_key":"eA==","wrapped_sha256":"` + sha256Hex([]byte("x")) + `"}`))
	f.Fuzz(func(t *testing.T, src []byte) {
		st, err := parseState(src)
		if err != nil {
			return
		}
		once, err := st.marshal()
		must(t, err)
		again, err := parseState(once)
		must(t, err)
		twice, err := again.marshal()
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("%s\n%s", once, twice)
		}
	})
}
