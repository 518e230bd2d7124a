package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestSigningInOnAFullDisk lets the disk become full at one place after the other while something is signed in, renewed and
// signed out. The message says why, what was in force stays, nothing is half stored, and what came to nothing is not left at the provider.
func TestSigningInOnAFullDisk(t *testing.T) {
	b := newBench(t)
	fill := b.onSmallDisk()
	p := b.withProvider()
	b.untilRoom(fill, installToken, func(room int) {
		if b.signIn() != "none" || len(p.others("none")) > 0 {
			t.Errorf("install, %d KiB free: there is %s, and the provider knows %v", room, b.signIn(), p.others("none"))
		}
	})
	was, asked := b.signIn(), p.logged(t, "signed in")
	b.untilRoom(fill, authToken, func(room int) {
		if room == 0 && p.logged(t, "signed in") != asked {
			t.Error("auth on a full disk sends somebody to the browser for nothing")
		}
		if b.signIn() != was || !p.knows(was) {
			t.Errorf("auth, %d KiB free: there is %s, which the provider knows: %v", room, b.signIn(), p.knows(was))
		}
	})
	b.must("call", "token", "whoami")

	p.steer(t, "life=1")
	b.must("uninstall", "token")
	b.must(append(slices.Clone(installToken), "--no-verify")...)
	p.steer(t, "life=3600")
	time.Sleep(time.Second) // the life of the token
	was = b.signIn()
	b.untilRoom(fill, []string{"verify", "token"}, func(room int) {
		if now := b.signIn(); !p.knows(now) {
			t.Errorf("verify, %d KiB free: the renewed token is lost", room)
		}
	})
	if b.signIn() == was {
		t.Error("nothing was renewed")
	}
	b.untilRoom(fill, []string{"logout", "token"}, func(room int) {
		if now := b.signIn(); now != "signed out" && !p.knows(now) {
			t.Errorf("logout, %d KiB free: the provider has forgotten what is in force here", room)
		}
	})
	if b.signIn() != "signed out" {
		t.Error("it is not signed out")
	}
	if left, _ := filepath.Glob(filepath.Join(b.home(), "keystore", "owed__*.age")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestPairingOnAFullDisk: the disk is full when the phone reads the code, and when the record of a session that is there is written.
func TestPairingOnAFullDisk(t *testing.T) {
	b := newBench(t)
	fill := b.onSmallDisk()
	s := b.sit("install", "pair")
	s.agreePair()
	phone(t, b.home(), "idle")
	fillAllBut(t, fill, 0)
	phone(t, b.home(), "scan")
	s.wait("No space left on device")
	s.wait("What now?")
	s.keys(down + down)
	s.wait("> Give up; nothing is stored")
	s.keys(enter)
	if code := s.ends(); code != exitConnector {
		t.Errorf("exit %d\n%s", code, s.seen())
	}
	if left := b.withoutTops(); left != "" {
		t.Errorf("left:\n%s", left)
	}
	if err := os.Remove(fill); err != nil {
		t.Fatal(err)
	}

	b.must("install", "pair", "--yes", "--pending")
	if err := os.WriteFile(sessionOf(b.home()), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.untilRoom(fill, []string{"auth", "pair"}, func(room int) {
		if out := b.must("list"); !strings.Contains(out, "unauthorized") {
			t.Errorf("%d KiB free: %s", room, out)
		}
	})
	b.must("call", "pair", "echo", `{"text":"on"}`)
}

// untilRoom runs a command with more and more room on the disk until it comes to its end.
func (b *bench) untilRoom(fill string, args []string, failed func(room int)) {
	b.t.Helper()
	full := 0
	for room := 0; room < 512; room += 4 + room/4 {
		fillAllBut(b.t, fill, room<<10)
		code, _, errs := b.run(nil, args...)
		if err := os.Remove(fill); err != nil {
			b.t.Fatal(err)
		}
		if code == exitDone {
			if full < 2 {
				b.t.Errorf("%q: the disk was full %d times only", args, full)
			}
			return
		}
		full++
		if !strings.Contains(errs, "no space left on device") {
			b.t.Errorf("%q, %d KiB free: exit %d: %s", args, room, code, errs)
		}
		failed(room)
	}
	b.t.Errorf("%q never came to its end", args)
}
