package launch

import (
	"bytes"
	"slices"

	"skald-connectors/internal/exactjson"
)

const (
	// maxSubscriptions and maxWish bound what is remembered of a client: what is
	// beyond them is in force until the connector is replaced.
	maxSubscriptions = 1024
	maxWish          = 2 << 10
)

// wishes are what a client has asked for that lasts as long as the connector does.
// One that takes the place of another (after parking, or after a session that a
// remote server has forgotten) is asked again: the client does not know of it.
// The level is also kept of a parked session, where it could not be asked for;
// a subscription only when the connector took it.
type wishes struct {
	level      []byte   // params of logging/setLevel; nil: none
	subscribed []string // uris, as they are spelt in JSON
}

// wish is the part of a client's request that is remembered; nil: nothing.
func wish(m method, sc *scanner, line []byte) []byte {
	f := fieldURI
	switch m {
	case setLevel:
		f = fieldParams
	case subscribe, unsubscribe:
		if _, ok := sc.text(line, fieldURI); !ok {
			return nil
		}
	default:
		return nil
	}
	if said := sc.raw(line, f); len(said) <= maxWish {
		return said
	}
	return nil
}

// accepted notes that the connector did what was asked.
func (w *wishes) accepted(m method, said []byte) {
	switch {
	case len(said) == 0:
	case m == setLevel:
		w.level = append(w.level[:0], said...)
	case m == subscribe && w.find(said) < 0 && len(w.subscribed) < maxSubscriptions:
		w.subscribed = append(w.subscribed, string(said))
	case m == unsubscribe:
		if i := w.find(said); i >= 0 {
			w.subscribed = slices.Delete(w.subscribed, i, i+1)
		}
	}
}

// parked notes what was asked for while nothing could do it.
func (w *wishes) parked(m method, said []byte) {
	if m != subscribe {
		w.accepted(m, said)
	}
}

// find compares the texts, however they are spelt.
func (w *wishes) find(said []byte) int {
	text := unescape(nil, said[1:len(said)-1])
	return slices.IndexFunc(w.subscribed, func(s string) bool {
		return bytes.Equal(unescape(nil, []byte(s[1:len(s)-1])), text)
	})
}

// each gives the requests for a connector that has these capabilities.
func (w *wishes) each(can capable, ask func(method, params string)) {
	if w.level != nil && can.logging {
		ask("logging/setLevel", string(w.level))
	}
	if !can.subscribe {
		return
	}
	for _, uri := range w.subscribed {
		ask("resources/subscribe", `{"uri":`+uri+`}`)
	}
}

// capable is what of it a connector can do.
type capable struct{ logging, subscribe bool }

func capableOf(capabilities exactjson.Value) (can capable) {
	_, can.logging = capabilities.Get("logging")
	resources, _ := capabilities.Get("resources")
	sub, _ := resources.Get("subscribe")
	can.subscribe = sub.Kind == exactjson.Bool && sub.Str == "true"
	return can
}
