package keystore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/zalando/go-keyring"

	"skald-connectors/internal/lazyre"
)

const (
	// keychainLimit is how long a keychain call may take when nobody is
	// there; a healthy one answers in milliseconds.
	keychainLimit = 5 * time.Second
	// keychainPatience is the same while a person may have to unlock it.
	keychainPatience = 60 * time.Second
	// keychainNotice is the silence after which the person is told.
	keychainNotice = time.Second

	waitingForUnlock = "waiting for your keychain to be unlocked"
	keychainService  = "skald-connectors"
)

// guard puts an end to every keychain call. A call that does not return leaves
// its goroutine and, with some keychains, a connection that later calls share
// stuck: so after the first time-out there are no more calls.
type guard struct {
	chain       Keychain
	interactive bool
	notice      func(string)
	limit       time.Duration

	mu   sync.Mutex
	dead bool
}

func newGuard(o Options) *guard {
	g := &guard{chain: o.Keychain, interactive: o.Interactive, notice: o.Notice, limit: keychainLimit}
	if g.chain == nil {
		g.chain = osKeychain{interactive: o.Interactive}
	}
	if o.Interactive {
		g.limit = keychainPatience
	}
	return g
}

func (g *guard) get(ctx context.Context, user string) (string, error) {
	return g.call(ctx, "reading from keychain", func() (string, error) { return g.chain.Get(keychainService, user) })
}

func (g *guard) set(ctx context.Context, user, value string) error {
	_, err := g.call(ctx, "writing to keychain", func() (string, error) { return "", g.chain.Set(keychainService, user, value) })
	return err
}

func (g *guard) delete(ctx context.Context, user string) error {
	_, err := g.call(ctx, "deleting from keychain", func() (string, error) { return "", g.chain.Delete(keychainService, user) })
	return err
}

// call runs do under the deadline. Errors are *Error with NotFound, Locked,
// Unavailable or TimedOut, or wrap ctx.Err().
func (g *guard) call(ctx context.Context, op string, do func() (string, error)) (string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.dead {
		return "", &Error{Kind: TimedOut, Op: op, Err: errors.New("it did not answer before")}
	}
	if err := ctx.Err(); err != nil {
		return "", fmt.Errorf("%s: %w", op, err)
	}
	type answer struct {
		value string
		err   error
	}
	done := make(chan answer, 1) // buffered: a late answer must not keep its goroutine
	go func() {
		v, err := recovered(do)
		done <- answer{v, err}
	}()
	end, tell := time.NewTimer(g.limit), time.NewTimer(keychainNotice)
	defer end.Stop()
	defer tell.Stop()
	for {
		select {
		case a := <-done:
			return a.value, classify(op, a.err)
		case <-tell.C:
			if g.interactive && g.notice != nil {
				g.notice(waitingForUnlock)
			}
		case <-end.C:
			g.dead = true
			return "", &Error{Kind: TimedOut, Op: op, Err: fmt.Errorf("no answer in %s", g.limit)}
		case <-ctx.Done():
			g.dead = true
			return "", fmt.Errorf("%s: %w", op, ctx.Err())
		}
	}
}

// recovered turns a panic of a keychain library into an error: one of them
// reads from a nil signal when its connection is lost.
func recovered(do func() (string, error)) (value string, err error) {
	defer func() {
		if p := recover(); p != nil {
			value, err = "", errors.New("its library broke off")
		}
	}()
	return do()
}

// classify gives err a Kind. The text of a keychain's error is not ours: it
// may quote what it was given, and then it is dropped.
func classify(op string, err error) error {
	var known *Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, keyring.ErrNotFound):
		return &Error{Kind: NotFound, Op: op, Err: err}
	case errors.As(err, &known):
		return &Error{Kind: known.Kind, Op: op, Err: scrub(known.Err)}
	case strings.Contains(err.Error(), "failed to unlock correct collection"): // go-keyring has no type for it
		return &Error{Kind: Locked, Op: op, Err: scrub(err)}
	case lockedHere(err):
		return &Error{Kind: Locked, Op: op, Err: scrub(err)}
	}
	return &Error{Kind: Unavailable, Op: op, Err: scrub(err)}
}

var keyText = lazyre.New(`(?i)age-secret-key|QUdFLVNFQ1JFVC1LRVk`) // plain, and as base64 writes its start

func scrub(err error) error {
	if err != nil && keyText.MatchString(err.Error()) {
		return errors.New("its message is withheld, for it names the key")
	}
	return err
}
