//go:build unix

package form

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// endSignals end a question. The caller sees them too, if it asked for them.
var endSignals = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}

func notifyStop(stops chan<- os.Signal) { signal.Notify(stops, syscall.SIGTSTP) }

// watchSize reports changes of the window, and going on after a stop that nobody could catch.
func watchSize(_ *os.File, resizes chan<- struct{}) (stop func()) {
	sig := make(chan os.Signal, 1)
	signal.Notify(sig, syscall.SIGWINCH)
	go func() {
		for range sig {
			select {
			case resizes <- struct{}{}:
			default: // one is on its way already
			}
		}
	}()
	return func() {
		signal.Stop(sig)
		close(sig)
	}
}

// stopHere stops this process, and with group the others of its group as the terminal would, and returns when it goes
// on. A stop signal is ignored by the kernel where no shell could continue us; then it returns after wait.
// The stop of ourselves is SIGTTOU: once a Go program has asked for SIGTSTP, its default action cannot be had back.
// stops is where SIGTSTP is caught: our own must be taken out, or it would stop us a second time.
func stopHere(group bool, stops <-chan os.Signal, wait time.Duration) {
	cont := make(chan os.Signal, 1)
	signal.Notify(cont, syscall.SIGCONT)
	defer signal.Stop(cont)
	if group && unix.Kill(0, syscall.SIGTSTP) == nil {
		select {
		case <-stops:
		case <-time.After(wait):
		}
	}
	if unix.Kill(os.Getpid(), syscall.SIGTTOU) != nil {
		return
	}
	select {
	case <-cont:
	case <-time.After(wait):
	}
}

// prepareOutput has nothing to do where terminals understand escape sequences.
func prepareOutput(*os.File) (restore func()) { return func() {} }
