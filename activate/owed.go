package activate

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"

	"skald-connectors/keystore"
	"skald-connectors/login"
)

// A sign-in that its provider knows, and that no record names or none will name any more, is first written down as owed: a
// vault of its own beside those of the activations, a generation for each. A command that comes to its end gives it back itself, or
// puts it into force; after a kill whoever works on the activation next, or the next sweep, gives it back. What is given back is
// revoked at its provider, but for what may be the same grant as one that is in force.

// owedPrefix begins the names of such vaults. No activation can have that name: theirs have no "__".
const owedPrefix = "owed__"

const (
	owedFor  = "activation" // the handle that holds the activation's name
	owedRoom = "room"       // the handle of a vault that keeps room for a sign-in
	// owedLongest is the longest activation's name that a vault's has room for.
	owedLongest = 64 - len(owedPrefix)
	// roomBytes is what most sign-ins take.
	roomBytes = 4 << 10
)

func owedVault(name string) string {
	if len(name) <= owedLongest {
		return owedPrefix + name
	}
	sum := sha256.Sum256([]byte(name))
	return owedPrefix + "_" + hex.EncodeToString(sum[:16])
}

// owe writes sign-ins down, durably. Those that their providers cannot be told of are left out. The lock of the name is held.
func (a *Activator) owe(ctx context.Context, name string, creds ...login.Credential) error {
	for _, cred := range creds {
		if !cred.Revokes() {
			continue
		}
		hs, err := cred.Merge(nil)
		if err != nil {
			return err
		}
		a.step("owe-sign-in")
		if err := a.putOwed(context.WithoutCancel(ctx), name, hs...); err != nil {
			return err
		}
	}
	return nil
}

// keepRoom finds out before anybody signs in whether a sign-in could be stored.
func (a *Activator) keepRoom(ctx context.Context, name string) error {
	return a.putOwed(ctx, name, keystore.Handle{Name: owedRoom, Value: keystore.NewSecret(strings.Repeat("-", roomBytes))})
}

func (a *Activator) putOwed(ctx context.Context, name string, hs ...keystore.Handle) error {
	gens, err := a.Keys.Generations(owedVault(name))
	if err != nil {
		return err
	}
	next := int64(1)
	if len(gens) > 0 {
		next = slices.Max(gens) + 1
	}
	return a.Keys.Put(ctx, owedVault(name), next, append(hs, keystore.Handle{Name: owedFor, Value: keystore.NewSecret(name)}))
}

// settleOwed strikes what was owed, but for some generations: it is in force, or was given back.
func (a *Activator) settleOwed(name string, but ...int64) {
	gens, err := a.Keys.Generations(owedVault(name))
	if err != nil || len(gens) == 0 {
		return
	}
	a.step("settle-sign-in")
	if err := a.Keys.Remove(owedVault(name), but...); err != nil {
		a.say("note: %v", err) // the next one gives it back, or finds it in force
	}
}

// payOwed gives back what a killed command owed. The lock of the name is held. What a provider answers keeps nobody from working; a
// vault that cannot be read stays, and doctor names it.
func (a *Activator) payOwed(ctx context.Context, name string) {
	vault := owedVault(name)
	gens, err := a.Keys.Generations(vault)
	if err != nil || len(gens) == 0 {
		return
	}
	var unread []int64
	for _, gen := range gens {
		hs, err := a.Keys.Load(ctx, vault, gen)
		if err != nil {
			a.say("note: a sign-in that an interrupted command left could not be read: %v", err)
			unread = append(unread, gen)
			continue
		}
		if cred, ok, err := login.Find(hs); err == nil && ok {
			a.giveBack(ctx, name, cred)
		}
	}
	if len(unread) < len(gens) {
		a.settleOwed(name, unread...)
	}
}

func (a *Activator) giveBack(ctx context.Context, name string, cred login.Credential) {
	shared, inForce := a.mayBeShared(ctx, name, cred)
	if inForce {
		return // the command was killed after its record was written
	}
	if len(shared) > 0 {
		a.say("note: a sign-in with %s that an interrupted command left was dropped and not revoked, since %s may use the same account", cred.Name(), strings.Join(shared, ", "))
		return
	}
	ctx, cancel := context.WithTimeout(ctx, revokeLimit)
	defer cancel()
	if err := a.Logins().Revoke(ctx, cred); err != nil {
		a.say("note: a sign-in with %s that an interrupted command left could not be revoked: %v", cred.Name(), err)
		return
	}
	a.say("a sign-in with %s that an interrupted command left was revoked", cred.Name())
}

// mayBeShared names the activations whose sign-in may be one grant with cred at its provider, name itself included. inForce says
// that it is the very one that name has.
func (a *Activator) mayBeShared(ctx context.Context, name string, cred login.Credential) (shared []string, inForce bool) {
	shared = a.othersSignedIn(name, cred)
	rec, err := a.Records().Read(name)
	if err != nil {
		return shared, false
	}
	for _, r := range withPrior(rec) {
		own, ok := a.signInOf(ctx, r)
		if !ok || !samePlace(own, cred) {
			continue
		}
		inForce = inForce || own.Refresh.Equal(cred.Refresh) && own.Access.Equal(cred.Access)
		if !slices.Contains(shared, name) {
			shared = append(shared, name)
		}
	}
	return shared, inForce
}

// isDamaged tells that one vault is not what was written, whatever the others are.
func isDamaged(err error) bool {
	bad, ok := errors.AsType[*keystore.Error](err)
	return ok && (bad.Kind == keystore.Damaged || bad.Kind == keystore.Replaced)
}

// A DamagedOwed is a sign-in that its provider has yet to be told of, in a vault that cannot be read any more.
type DamagedOwed struct {
	Vault      string
	Generation int64
	Err        error
}

// DamagedOwed lists the owed sign-ins that cannot be read. The key of the vaults is open.
func (a *Activator) DamagedOwed(ctx context.Context) (list []DamagedOwed, err error) {
	vaults, err := a.Keys.Names()
	for _, vault := range vaults {
		if !strings.HasPrefix(vault, owedPrefix) {
			continue
		}
		gens, gerr := a.Keys.Generations(vault)
		err = errors.Join(err, gerr)
		for _, gen := range gens {
			if _, lerr := a.Keys.Load(ctx, vault, gen); isDamaged(lerr) {
				list = append(list, DamagedOwed{vault, gen, lerr})
			}
		}
	}
	return list, err
}

// payAllOwed is payOwed for every activation that nobody works on. A damaged vault does not keep it from the others.
func (a *Activator) payAllOwed(ctx context.Context) error {
	vaults, err := a.Keys.Names()
	if err != nil {
		return err
	}
	var damaged error
	paid := false
	for _, vault := range vaults {
		if !strings.HasPrefix(vault, owedPrefix) {
			continue
		}
		name, err := a.owedName(ctx, vault)
		if isDamaged(err) {
			damaged = errors.Join(damaged, err)
			continue
		}
		if err != nil {
			return errors.Join(damaged, err)
		}
		if name == "" {
			continue
		}
		unlock, free := a.tryName(name)
		if !free {
			continue
		}
		a.payOwed(ctx, name)
		unlock()
		paid = true
	}
	if !paid {
		return damaged
	}
	return errors.Join(damaged, a.Keys.Forget(ctx))
}

// owedName is the activation that a vault is owed for; "" = it was settled meanwhile, or is no such vault.
func (a *Activator) owedName(ctx context.Context, vault string) (string, error) {
	gens, err := a.Keys.Generations(vault)
	if err != nil || len(gens) == 0 {
		return "", err
	}
	var unread error
	for _, gen := range gens {
		hs, err := a.Keys.Load(ctx, vault, gen)
		var gone *keystore.Error
		if errors.As(err, &gone) && gone.Kind == keystore.NotFound {
			continue // settled meanwhile
		}
		for _, h := range hs {
			if h.Name == owedFor && owedVault(h.Value.Reveal()) == vault {
				return h.Value.Reveal(), nil
			}
		}
		unread = cmp.Or(unread, err)
	}
	return "", unread
}

// tryName takes the lock of a name where nobody holds it.
func (a *Activator) tryName(name string) (unlock func(), free bool) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	unlock, err := a.Store.LockName(ctx, name, func(string) { cancel() })
	return unlock, err == nil
}
