package launch

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

var phaseNames = [...]string{"parked", "waking", "fresh", "shaking", "open", "draining", "closing", "over"}

// TestStep holds the whole table: state and event → state and effects.
func TestStep(t *testing.T) {
	greeted := func(p phase) state { return state{phase: p, greeted: true} }
	rows := []struct {
		from state
		e    event
		to   state
		want effects
	}{
		// a fresh connector
		{state{phase: fresh}, event{kind: clientRequest, method: initialize}, state{phase: shaking}, do(track, forward)},
		{state{phase: shaking}, event{kind: clientRequest, method: initialize}, state{phase: shaking}, do(refuseAgain)},
		{state{phase: shaking}, event{kind: upstreamReply, method: initialize, answer: greeting{resources: true}}, state{phase: open, greeted: true, resources: true}, do(adapt, settle)},
		{state{phase: shaking}, event{kind: upstreamReply, method: initialize, refused: true}, state{phase: fresh}, do(adapt, settle)},
		{state{phase: shaking}, event{kind: upstreamReply, method: ping}, state{phase: shaking}, do(adapt, settle)},
		{state{phase: fresh}, event{kind: clientRequest, status: true, method: resourcesRead}, state{phase: fresh}, do(refuseNoStatus)},
		{state{phase: fresh}, event{kind: clientRequest, method: resourcesList}, state{phase: fresh}, do(track, forward)},
		{state{phase: fresh}, event{kind: clientNotification, method: initialized}, state{phase: fresh, ready: true}, do(forward)},
		{state{phase: fresh}, event{kind: clientNotification, method: initialize}, state{phase: fresh}, do(drop)},
		// open
		{greeted(open), event{kind: clientRequest, method: initialize}, greeted(open), do(refuseAgain)},
		{greeted(open), event{kind: clientRequest, method: toolsCall}, greeted(open), do(track, forward)},
		{greeted(open), event{kind: clientRequest, method: toolsCall, verdict: forbidden}, greeted(open), do(refuseForbidden)},
		{greeted(open), event{kind: clientRequest, method: toolsCall, verdict: held}, greeted(open), do(refuseChanged)},
		{greeted(open), event{kind: clientNotification, method: toolsCall, verdict: forbidden}, greeted(open), do(drop)},
		{greeted(open), event{kind: clientNotification, method: toolsCall}, greeted(open), do(forward)},
		{greeted(open), event{kind: clientRequest, method: resourcesList}, greeted(open), do(answerResources)},
		{state{phase: open, greeted: true, resources: true}, event{kind: clientRequest, method: resourcesList}, state{phase: open, greeted: true, resources: true}, do(track, forward)},
		{greeted(open), event{kind: clientRequest, method: resourcesRead, status: true}, greeted(open), do(track, answerStatus)},
		{greeted(open), event{kind: clientRequest, method: resourcesRead}, greeted(open), do(refuseNoResource)},
		{greeted(open), event{kind: clientRequest, method: resourceTemplates}, greeted(open), do(answerTemplates)},
		{state{phase: open, greeted: true, resources: true}, event{kind: clientRequest, method: resourcesRead}, state{phase: open, greeted: true, resources: true}, do(track, forward)},
		{state{phase: open, greeted: true, resources: true}, event{kind: clientRequest, method: resourceTemplates}, state{phase: open, greeted: true, resources: true}, do(track, forward)},
		{state{phase: fresh}, event{kind: clientRequest, method: resourceTemplates}, state{phase: fresh}, do(track, forward)},
		{greeted(open), event{kind: clientRequest}, greeted(open), do(track, forward)},
		{greeted(open), event{kind: clientReply}, greeted(open), do(forward)},
		{greeted(open), event{kind: clientFlaw, answering: true}, greeted(open), do(refuseFlaw)},
		{greeted(open), event{kind: clientFlaw}, greeted(open), do(drop)},
		{greeted(open), event{kind: upstreamReply}, greeted(open), do(adapt, settle)},
		{greeted(open), event{kind: upstreamReply, own: ownList}, greeted(open), do(settle)},
		{greeted(open), event{kind: upstreamReply, own: ownInitialize}, greeted(open), do(settle)},
		{greeted(open), event{kind: upstreamMessage, method: toolsChanged}, greeted(open), do(forward)},
		{greeted(open), event{kind: newGrant}, greeted(open), do(tellChanged)},
		{greeted(open), event{kind: statusAnswered}, greeted(open), effects{}},
		{greeted(open), event{kind: drainTimeout}, greeted(open), effects{}},
		{greeted(open), event{kind: wakeUp}, greeted(open), do(refuseUpstream)},
		{greeted(open), event{kind: parkNow}, greeted(parked), do(failWaitingAuth, stopUpstream, tellChanged)},
		{state{phase: shaking}, event{kind: parkNow}, greeted(parked), do(failWaitingAuth, stopUpstream)},
		{state{phase: fresh}, event{kind: parkNow}, state{phase: parked}, do(failWaitingAuth, stopUpstream)},
		// parked
		{state{}, event{kind: clientRequest, method: initialize}, greeted(parked), do(answerGreeting)},
		{greeted(parked), event{kind: clientRequest, method: initialize}, greeted(parked), do(refuseAgain)},
		{state{}, event{kind: clientRequest, method: resourcesRead, status: true}, state{}, do(refuseNoStatus)},
		{greeted(parked), event{kind: clientRequest, method: resourcesRead, status: true}, greeted(parked), do(track, answerStatus)},
		{greeted(parked), event{kind: clientRequest, method: resourcesRead}, greeted(parked), do(refuseParkedRead)},
		{greeted(parked), event{kind: clientRequest, method: resourcesList}, greeted(parked), do(answerResources)},
		{greeted(parked), event{kind: clientRequest, method: toolsList}, greeted(parked), do(answerNoTools)},
		{greeted(parked), event{kind: clientRequest, method: ping}, greeted(parked), do(answerPing)},
		{greeted(parked), event{kind: clientRequest, method: toolsCall}, greeted(parked), do(refuseParkedCall)},
		{greeted(parked), event{kind: clientRequest, method: toolsCall, verdict: held}, greeted(parked), do(refuseParkedCall)},
		{greeted(parked), event{kind: clientRequest, method: toolsCall, verdict: forbidden}, greeted(parked), do(refuseForbidden)},
		{greeted(parked), event{kind: clientRequest}, greeted(parked), do(refuseParked)},
		{greeted(parked), event{kind: clientNotification, method: initialized}, state{greeted: true, ready: true}, do(drop)},
		{greeted(parked), event{kind: clientReply}, greeted(parked), do(drop)},
		{greeted(parked), event{kind: upstreamMessage}, greeted(parked), do(drop)},
		{greeted(parked), event{kind: upstreamReply}, greeted(parked), do(drop)},
		{greeted(parked), event{kind: upstreamEnd}, greeted(parked), effects{}},
		{greeted(parked), event{kind: parkNow}, greeted(parked), effects{}},
		{greeted(parked), event{kind: newGrant}, greeted(parked), effects{}},
		{state{}, event{kind: clientEnd}, state{phase: over}, do(failWaitingAuth, finish)},
		{state{}, event{kind: stopNow}, state{phase: over, cause: Stopped}, do(failWaitingAuth, finish)},
		// waking
		{state{}, event{kind: wakeUp}, state{phase: fresh}, do(takeUpstream)},
		{greeted(parked), event{kind: wakeUp}, greeted(waking), do(takeUpstream, greetUpstream)},
		{greeted(waking), event{kind: clientRequest, method: toolsList}, greeted(waking), do(answerNoTools)},
		{greeted(waking), event{kind: upstreamMessage, method: toolsChanged}, greeted(waking), do(drop)},
		{greeted(waking), event{kind: upstreamMessage}, greeted(waking), do(forward)},
		{greeted(waking), event{kind: upstreamReply, own: ownInitialize}, greeted(open), do(settle, remindUpstream, tellChanged)},
		{greeted(open), event{kind: upstreamReply, own: ownReminder}, greeted(open), do(settle)},
		{state{phase: waking, greeted: true, ready: true}, event{kind: upstreamReply, own: ownInitialize, answer: greeting{resources: true}},
			state{phase: open, greeted: true, ready: true, resources: true}, do(settle, readyUpstream, remindUpstream, tellChanged)},
		{greeted(waking), event{kind: upstreamReply, own: ownInitialize, refused: true}, greeted(parked), do(settle, stopUpstream)},
		{greeted(waking), event{kind: upstreamReply, own: ownInitialize, answer: greeting{mismatch: true}},
			state{phase: closing, greeted: true, cause: RestartClient}, do(settle, stopUpstream)},
		{greeted(waking), event{kind: upstreamEnd}, greeted(parked), do(failWaitingAuth, stopUpstream)},
		{greeted(waking), event{kind: parkNow}, greeted(parked), do(failWaitingAuth, stopUpstream)},
		{greeted(waking), event{kind: wakeUp}, greeted(waking), do(refuseUpstream)},
		{greeted(waking), event{kind: clientEnd, waiting: 1}, greeted(closing), do(stopUpstream)},
		// ending
		{greeted(open), event{kind: clientEnd}, greeted(closing), do(stopUpstream)},
		{greeted(open), event{kind: clientEnd, waiting: 2}, greeted(draining), do(armDrain)},
		{greeted(draining), event{kind: upstreamReply, waiting: 1}, greeted(draining), do(adapt, settle)},
		{greeted(draining), event{kind: upstreamReply}, greeted(closing), do(adapt, settle, stopUpstream)},
		{greeted(draining), event{kind: statusAnswered}, greeted(closing), do(stopUpstream)},
		{greeted(draining), event{kind: statusAnswered, waiting: 1}, greeted(draining), effects{}},
		{greeted(draining), event{kind: drainTimeout}, greeted(closing), do(stopUpstream)},
		{greeted(draining), event{kind: parkNow}, greeted(closing), do(failWaitingAuth, stopUpstream)},
		{greeted(draining), event{kind: upstreamEnd}, state{phase: over, greeted: true, cause: UpstreamEnded}, do(failWaiting, finish)},
		{greeted(closing), event{kind: clientRequest}, greeted(closing), do(refuseEnding)},
		{greeted(closing), event{kind: clientNotification}, greeted(closing), do(drop)},
		{greeted(closing), event{kind: upstreamReply}, greeted(closing), do(adapt, settle)},
		{greeted(closing), event{kind: upstreamMessage}, greeted(closing), do(forward)},
		{greeted(closing), event{kind: upstreamEnd}, state{phase: over, greeted: true}, do(failWaiting, finish)},
		{greeted(closing), event{kind: stopNow}, greeted(closing), effects{}},
		{greeted(open), event{kind: upstreamEnd}, state{phase: over, greeted: true, cause: UpstreamEnded}, do(failWaiting, finish)},
		{greeted(open), event{kind: upstreamStalled}, state{phase: closing, greeted: true, cause: UpstreamStalled}, do(failWaiting, stopUpstream)},
		{greeted(open), event{kind: upstreamTooLong}, state{phase: closing, greeted: true, cause: LineTooLong}, do(failWaiting, stopUpstream)},
		{greeted(open), event{kind: stopNow}, state{phase: closing, greeted: true, cause: Stopped}, do(stopUpstream)},
		{greeted(open), event{kind: clientGone}, greeted(closing), do(stopUpstream)},
		{state{phase: over}, event{kind: wakeUp}, state{phase: over}, do(refuseUpstream)},
		{state{phase: over}, event{kind: clientRequest}, state{phase: over}, effects{}},
	}
	reached := map[phase]bool{}
	for _, row := range rows {
		reached[row.from.phase] = true
		if to, fx := step(row.from, row.e); to != row.to || fx != row.want {
			t.Errorf("%s %+v: %+v %v; want %+v %v", phaseNames[row.from.phase], row.e, to, fx.list[:fx.n], row.to, row.want.list[:row.want.n])
		}
	}
	if len(reached) != len(phaseNames) {
		t.Errorf("the table begins in %d of %d phases", len(reached), len(phaseNames))
	}
}

// TestStepLaws holds what must be so in every state for every event.
func TestStepLaws(t *testing.T) {
	for bits := range 1 << 3 {
		for p := parked; p <= over; p++ {
			s := state{phase: p, greeted: bits&1 > 0, ready: bits&2 > 0, resources: bits&4 > 0}
			for kind := clientRequest; kind <= newGrant; kind++ {
				for m := otherMethod; m <= toolsChanged; m++ {
					for v := granted; v <= held; v++ {
						for own := ownNone; own <= ownReminder; own++ {
							checkLaws(t, s, event{kind: kind, method: m, verdict: v, own: own})
						}
					}
				}
			}
		}
	}
}

func checkLaws(t *testing.T, s state, e event) {
	t.Helper()
	to, fx := step(s, e)
	seen := map[effect]int{}
	answers := 0
	for _, f := range fx.list[:fx.n] {
		seen[f]++
		if f >= answerGreeting && f <= refuseEnding {
			answers++
		}
	}
	what := fmt.Sprintf("%s %+v → %s %v", phaseNames[s.phase], e, phaseNames[to.phase], fx.list[:fx.n])
	switch {
	case e.kind == clientRequest && s.phase != over && answers+seen[forward] != 1:
		t.Fatalf("a request is neither answered nor forwarded once: %s", what)
	case (e.kind == clientNotification || e.kind == clientReply) && answers > 0:
		t.Fatalf("a notification is answered: %s", what)
	case e.method == initialize && seen[forward] > 0 && e.kind == clientRequest && (s.greeted || s.phase != fresh && s.phase != open && s.phase != draining):
		t.Fatalf("a second initialize: %s", what)
	case e.method == toolsCall && e.verdict != granted && seen[forward] > 0 && (e.kind == clientRequest || e.kind == clientNotification):
		t.Fatalf("a tool beyond the grant: %s", what)
	case seen[finish] > 0 && to.phase != over, to.phase == over && s.phase != over && seen[finish] == 0:
		t.Fatalf("over and finish do not go together: %s", what)
	case s.greeted && !to.greeted:
		t.Fatalf("a greeting is forgotten: %s", what)
	}
}

// TestDiagramHasThePhases holds the drawing to the constants.
func TestDiagramHasThePhases(t *testing.T) {
	src, err := os.ReadFile("machine.go")
	if err != nil {
		t.Fatal(err)
	}
	doc, _, _ := strings.Cut(string(src), "type phase uint8")
	for _, name := range phaseNames {
		if !regexp.MustCompile(`(?m)^//.*\b` + name + `\b`).MatchString(doc) {
			t.Errorf("the diagram does not show %q", name)
		}
	}
}
