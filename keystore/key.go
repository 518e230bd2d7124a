package keystore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
)

// passphraseTries is how often a person may mistype.
const passphraseTries = 3

// opened gives the vault key of st, from memory when it has been opened before.
// s.gate is held.
func (s *Store) opened(ctx context.Context, st *state) (*key, error) {
	if s.o.Want != "" && s.o.Want != st.backend {
		return nil, &Error{Kind: Conflict, Op: "opening key store", What: string(s.o.Want),
			Err: fmt.Errorf("the vault key is kept by %s", st.backend)}
	}
	if s.cached != nil && s.cached.recipient() == st.recipient {
		return s.cached, nil
	}
	k, err := s.fetchKey(ctx, st)
	if err != nil {
		return nil, err
	}
	if k.recipient() != st.recipient {
		return nil, &Error{Kind: Replaced, Op: "opening vault key", What: string(st.backend),
			Err: errors.New("it is another key than the one recorded")}
	}
	s.cached = k
	return k, nil
}

func (s *Store) fetchKey(ctx context.Context, st *state) (*key, error) {
	switch st.backend {
	case BackendPassphrase:
		if k := keptLogin(st.recipient); k != nil { // by UnlockLogin
			return k, nil
		}
		return s.unwrapKey(ctx, st)
	case BackendKeyfile:
		return s.readKeyFile(s.keyPath(st))
	}
	text, err := s.guard.get(ctx, st.item)
	if isKind(err, NotFound) {
		return nil, &Error{Kind: KeyMissing, Op: "opening vault key", What: string(st.backend), Err: err}
	}
	if err != nil {
		return nil, err
	}
	k, err := parseKey(text)
	if err != nil {
		return nil, &Error{Kind: Damaged, Op: "opening vault key", What: string(st.backend), Err: err}
	}
	return k, nil
}

// unwrapKey asks for the passphrase. A wrong one is never kept.
func (s *Store) unwrapKey(ctx context.Context, st *state) (*key, error) {
	const op = "opening vault key"
	what := string(BackendPassphrase)
	if s.o.Passphrase == nil {
		return nil, &Error{Kind: Locked, Op: op, What: what, Err: errors.New("nobody is here to give it")}
	}
	ask := PassphraseAsk{Attempt: 1}
	for {
		p, err := s.o.Passphrase(ctx, ask)
		if err != nil {
			return nil, fmt.Errorf("asking for the passphrase: %w", err)
		}
		k, err := unwrap(st.wrapped, p)
		switch {
		case err == nil:
			return k, nil
		case errors.Is(err, errTooCostly):
			return nil, &Error{Kind: TooCostly, Op: op, What: what, Err: err}
		case !errors.Is(err, errWrongPassphrase):
			return nil, &Error{Kind: Damaged, Op: op, What: what, Err: err}
		case !s.o.Interactive || ask.Attempt == passphraseTries:
			return nil, &Error{Kind: WrongPassphrase, Op: op, What: what}
		}
		ask.Attempt++
		ask.Problem = "this is not the passphrase"
	}
}

func (s *Store) readKeyFile(path string) (*key, error) {
	const op = "reading key file"
	text, err := readPrivate(op, path, path, maxKeyText)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &Error{Kind: KeyMissing, Op: op, What: path}
	}
	if err != nil {
		return nil, err
	}
	k, err := parseKey(string(text))
	if err != nil {
		return nil, &Error{Kind: Damaged, Op: op, What: path, Err: err}
	}
	return k, nil
}

// isKind reports whether err is an *Error of that kind.
func isKind(err error, kind Kind) bool {
	var e *Error
	return errors.As(err, &e) && e.Kind == kind
}
