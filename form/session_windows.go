package form

import (
	"os"
	"time"

	"golang.org/x/sys/windows"
	"golang.org/x/term"
)

// endSignals end a question. Closing the console arrives as an interrupt.
var endSignals = []os.Signal{os.Interrupt}

// sizeEvery is how often the window is measured; there is no signal for it here.
const sizeEvery = 250 * time.Millisecond

func notifyStop(chan<- os.Signal) {}

// watchSize reports changes of the window.
func watchSize(out *os.File, resizes chan<- struct{}) (stop func()) {
	done := make(chan struct{})
	go func() {
		tick := time.NewTicker(sizeEvery)
		defer tick.Stop()
		lastW, lastH, _ := term.GetSize(int(out.Fd()))
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			if w, h, err := term.GetSize(int(out.Fd())); err == nil && (w != lastW || h != lastH) {
				lastW, lastH = w, h
				select {
				case resizes <- struct{}{}:
				default:
				}
			}
		}
	}()
	return func() { close(done) }
}

// stopHere has no meaning here.
func stopHere(bool, <-chan os.Signal, time.Duration) {}

// flushInput throws away what the console has received and nobody has read.
func flushInput(in *os.File) { _ = windows.FlushConsoleInputBuffer(windows.Handle(in.Fd())) }

// prepareOutput makes the console understand escape sequences.
func prepareOutput(out *os.File) (restore func()) {
	h := windows.Handle(out.Fd())
	var mode uint32
	if windows.GetConsoleMode(h, &mode) != nil || mode&windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING != 0 {
		return func() {}
	}
	_ = windows.SetConsoleMode(h, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING)
	return func() { _ = windows.SetConsoleMode(h, mode) }
}
