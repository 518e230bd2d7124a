package sandbox

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpproxy"
)

// The parent's half of the forwarder. It serves the sockets that the stage
// opened in the network of the process: an answer to every question for a name,
// with an address of its own for each declared one, and a connection to the
// outside for each that arrives with a declared name or address. What goes on is
// decided here, outside the sandbox, and for every connection anew.

const (
	// mostNames bounds what a wildcard can make us remember.
	mostNames = 4096
	// mostConnections bounds what one process can hold open through us.
	mostConnections = 1024
	dialWait        = 30 * time.Second
	lookupWait      = 5 * time.Second // the wait of resolv.conf inside
)

type egress struct {
	rules    hostRules
	resolver *net.Resolver
	proxy    func(*url.URL) (*url.URL, error)

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	slots  chan struct{}

	mu      sync.Mutex
	closers []func()
	byName  map[string]netip.Addr
	byAddr  map[netip.Addr]string
	next    netip.Addr
	refused denied
}

// firstFake is the first address that is given out. Those below are left to
// programs that talk to themselves.
var firstFake = netip.AddrFrom4([4]byte{127, 64, 0, 1})

func (s *Sandbox) newEgress(p Policy) (*egress, error) {
	list, err := parseHosts(p.Network.Hosts)
	if err != nil {
		return nil, err
	}
	e := &egress{rules: hostRules{list: list, loopback: p.Loopback}, resolver: s.resolver, slots: make(chan struct{}, mostConnections),
		byName: map[string]netip.Addr{}, byAddr: map[netip.Addr]string{}, next: firstFake}
	if e.resolver == nil {
		e.resolver = net.DefaultResolver
	}
	first := func(names ...string) string {
		for _, n := range names {
			if v := s.env(n); v != "" {
				return v
			}
		}
		return ""
	}
	e.proxy = (&httpproxy.Config{
		HTTPProxy:  first("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"),
		HTTPSProxy: first("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"),
		NoProxy:    first("NO_PROXY", "no_proxy"),
	}).ProxyFunc()
	e.ctx, e.cancel = context.WithCancel(context.Background())
	return e, nil
}

// ports are those that the stage opens, each once.
func (e *egress) ports() []int {
	list := append(e.rules.ports(), usualPorts...)
	slices.Sort(list)
	return slices.Compact(list)
}

// serve takes the sockets of the stage: the one for names and one a port.
func (e *egress) serve(fds []int) error {
	files := make([]*os.File, len(fds))
	for i, fd := range fds {
		files[i] = os.NewFile(uintptr(fd), "forwarder")
		defer files[i].Close() // the net package has its own copy
	}
	if want := 1 + len(e.ports()); len(files) != want {
		return fmt.Errorf("the helper opened %d sockets, not %d", len(files), want)
	}
	names, err := net.FilePacketConn(files[0])
	if err != nil {
		return err
	}
	e.closers = append(e.closers, func() { _ = names.Close() })
	for _, f := range files[1:] {
		l, err := net.FileListener(f)
		if err != nil {
			return err
		}
		e.closers = append(e.closers, func() { _ = l.Close() })
		e.wg.Go(func() { e.accept(l) })
	}
	e.wg.Go(func() { e.answer(names) })
	return nil
}

// close ends every connection and returns when nothing of the forwarder runs.
func (e *egress) close() {
	e.cancel()
	e.mu.Lock()
	closers := e.closers
	e.closers = nil
	e.mu.Unlock()
	for _, c := range closers {
		c()
	}
	e.wg.Wait()
}

// denials lists the refused connections, and the names that were asked for in
// vain.
func (e *egress) denials() []Denial {
	list := e.refused.all()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(e.byName)) {
		tried := slices.ContainsFunc(list, func(d Denial) bool { return strings.HasPrefix(d.Target, name+":") })
		if !e.rules.knows(name) && !tried && len(list) < mostDenials {
			list = append(list, Denial{Kind: DeniedNetwork, Target: name, Why: whyName})
		}
	}
	return list
}

const whyName = "the name is not declared"

// usualPorts are opened besides the declared ones, to learn what is wanted from
// a host that is not declared. No program inside could open them itself.
var usualPorts = []int{22, 25, 80, 110, 143, 389, 443, 465, 587, 636, 993, 995}

// answer answers questions for names until names is closed.
func (e *egress) answer(names net.PacketConn) {
	buf := make([]byte, dnsLimit+1)
	for {
		n, from, err := names.ReadFrom(buf)
		if err != nil {
			if e.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			continue // a question whose asker is gone
		}
		select {
		case e.slots <- struct{}{}:
		default:
			continue // it asks again
		}
		msg := append([]byte(nil), buf[:n]...)
		e.wg.Go(func() {
			defer func() { <-e.slots }()
			if r := respond(msg, e.address); r != nil {
				_, _ = names.WriteTo(r, from)
			}
		})
	}
}

// address gives the address that stands for name inside. A name that does not
// exist outside does not exist inside; where a proxy stands between, only it
// knows.
func (e *egress) address(name string) (netip.Addr, byte) {
	if name == "localhost" {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1}), dnsOK
	}
	if !validName(name) {
		return netip.Addr{}, dnsNoName
	}
	if !e.rules.knows(name) {
		// It gets an address too, so that the port becomes known for which it was
		// wanted; nothing goes out for it, neither the question nor a connection.
		return e.assign(name)
	}
	if !e.proxied(name, e.rules.ports()[0]) {
		ctx, cancel := context.WithTimeout(e.ctx, lookupWait)
		defer cancel()
		_, err := e.resolver.LookupNetIP(ctx, "ip", name)
		if dns, ok := errors.AsType[*net.DNSError](err); ok && dns.IsNotFound {
			return netip.Addr{}, dnsNoName
		}
	}
	return e.assign(name)
}

func (e *egress) assign(name string) (netip.Addr, byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if a, ok := e.byName[name]; ok {
		return a, dnsOK
	}
	if len(e.byName) >= mostNames {
		return netip.Addr{}, dnsFailed
	}
	a := e.next
	e.next = a.Next()
	e.byName[name], e.byAddr[a] = a, name
	return a, dnsOK
}

// meant tells which name the address inside stands for, "" for none.
func (e *egress) meant(a netip.Addr) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.byAddr[a]
}
