package login

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"skald-connectors/keystore"
)

// vaultKeep is a vault on disk, generation 1.
type vaultKeep struct{ keys *keystore.Store }

func (v vaultKeep) Load(ctx context.Context) ([]keystore.Handle, error) {
	return v.keys.Load(ctx, "gmail", 1)
}

func (v vaultKeep) Update(ctx context.Context, change func([]keystore.Handle) ([]keystore.Handle, error)) error {
	return v.keys.Update(ctx, "gmail", 1, change)
}

func openVault(dir string) vaultKeep {
	return vaultKeep{keystore.Open(keystore.Options{Dir: filepath.Join(dir, "keystore"), Want: keystore.BackendKeyfile})}
}

// rotator is a provider whose refresh tokens are good for one use, and which takes the second use for theft: then all
// tokens of the family are worth nothing.
type rotator struct {
	mu      sync.Mutex
	life    time.Duration
	serial  int
	ends    map[string]time.Time // of access tokens
	reuse   int
	refused int // API calls with a token that is no longer good
	calls   int
	dead    bool
}

func (r *rotator) token(w http.ResponseWriter, form url.Values) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dead || form.Get("refresh_token") != fmt.Sprint("refresh-", r.serial) {
		r.dead = true
		r.reuse++
		reply(w, 400, map[string]any{"error": "invalid_grant"})
		return
	}
	r.serial++
	access := fmt.Sprint("access-", r.serial)
	r.ends[access] = time.Now().Add(r.life)
	reply(w, 200, map[string]any{"access_token": access, "refresh_token": fmt.Sprint("refresh-", r.serial), "expires_in": r.life.Seconds()})
}

func (r *rotator) api(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls++
	if access, _ := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer "); r.dead || time.Now().After(r.ends[access]) {
		r.refused++
		w.WriteHeader(http.StatusUnauthorized)
	}
}

// Six processes use one credential whose tokens live two seconds, at a provider that rotates and detects reuse. It takes
// 15 s (SKALD_TEST_OAUTH_SECONDS says otherwise), 4 s with -short.
func TestSixProcessesOneCredential(t *testing.T) {
	seconds := 15
	if testing.Short() {
		seconds = 4
	}
	if n, err := strconv.Atoi(os.Getenv("SKALD_TEST_OAUTH_SECONDS")); err == nil {
		seconds = n
	}
	r := &rotator{life: 2 * time.Second, ends: map[string]time.Time{}}
	u := newUnkind(t, func(u *unkind) {
		u.token = r.token
		u.extra = func(mux *http.ServeMux) { mux.HandleFunc("/api", r.api) }
	})
	dir := t.TempDir()
	c := stored()
	c.TokenURL, c.Refresh = u.URL+"/token", keystore.NewSecret("refresh-0")
	hs, err := c.Merge(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := openVault(dir).keys.Put(t.Context(), "gmail", 1, hs); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 6 {
		all.Go(func() {
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), "LOGIN_TEST_ROLE=refresher", "LOGIN_TEST_DIR="+dir, "LOGIN_TEST_URL="+u.URL, fmt.Sprint("LOGIN_TEST_SECONDS=", seconds))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("process %d: %v\n%s", i, err, out)
			}
		})
	}
	all.Wait()
	last, err := testLoad(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d refreshes, %d calls, %d of them refused", r.serial, r.calls, r.refused)
	if r.reuse != 0 || last.Refresh.Reveal() != fmt.Sprint("refresh-", r.serial) {
		t.Errorf("%d reuses; the last stored token is not the last one of the provider", r.reuse)
	}
	if least := seconds / 2; r.serial < least || r.serial > 4*seconds || r.calls == 0 || r.refused*20 > r.calls {
		t.Errorf("%d refreshes and %d of %d calls refused in %d s", r.serial, r.refused, r.calls, seconds)
	}
}

func testLoad(dir string) (Credential, error) {
	hs, err := openVault(dir).Load(context.Background())
	if err != nil {
		return Credential{}, err
	}
	c, _, err := Find(hs)
	return c, err
}

// helper is this test binary as another program.
func helper(role string) int {
	dir, base := os.Getenv("LOGIN_TEST_DIR"), os.Getenv("LOGIN_TEST_URL")
	seconds, _ := strconv.Atoi(os.Getenv("LOGIN_TEST_SECONDS"))
	if role != "refresher" {
		return 2
	}
	c := &Client{HTTP: &http.Client{Transport: &http.Transport{}}, Now: time.Now}
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(seconds)*time.Second)
	defer cancel()
	keep, lock := openVault(dir), filepath.Join(dir, "lock")
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var refused keystore.Secret
	for ctx.Err() == nil {
		cred, err := c.Fresh(ctx, lock, keep, refused)
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			fmt.Println(err)
			return 1
		}
		req, _ := http.NewRequest(http.MethodGet, base+"/api", nil)
		req.Header.Set("Authorization", "Bearer "+cred.Access.Reveal())
		resp, err := c.HTTP.Do(req)
		if err != nil {
			fmt.Println(err)
			return 1
		}
		resp.Body.Close()
		refused = keystore.Secret{}
		if resp.StatusCode == http.StatusUnauthorized {
			refused = cred.Access
		}
		<-tick.C
	}
	return 0
}
