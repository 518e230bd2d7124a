package sandbox

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"syscall"
	"time"
)

// accept takes connections of one port until l is closed.
func (e *egress) accept(l net.Listener) {
	for {
		inner, err := l.Accept()
		if err != nil {
			if e.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			select { // no descriptors left for a moment
			case <-e.ctx.Done():
				return
			case <-time.After(busyPause):
			}
			continue
		}
		select {
		case e.slots <- struct{}{}:
			e.wg.Go(func() {
				defer func() { <-e.slots }()
				e.connect(inner)
			})
		default:
			reset(inner)
		}
	}
}

// reset closes c so that the other end sees an error and not the end of a stream.
func reset(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	_ = c.Close()
}

// connect carries one connection to where it was meant to go, or refuses it.
func (e *egress) connect(inner net.Conn) {
	defer reset(inner)
	stop := context.AfterFunc(e.ctx, func() { _ = inner.Close() })
	defer stop()
	local, ok := inner.LocalAddr().(*net.TCPAddr)
	if !ok {
		return
	}
	addr, port := local.AddrPort().Addr().Unmap(), local.Port
	name := e.meant(addr)
	target := name
	if name == "" {
		target = addr.String()
	}
	hostPort := net.JoinHostPort(target, strconv.Itoa(port))
	if name != "" && !e.rules.permitsName(name, port) || name == "" && !e.rules.permitsAddr(addr, port) {
		e.refused.add(Denial{Kind: DeniedNetwork, Target: hostPort, Why: whyUndeclared(name, addr, e.rules)})
		return
	}
	outer, err := e.dial(name, addr, port)
	if err != nil {
		e.refused.add(Denial{Kind: DeniedNetwork, Target: hostPort, Why: whyUnreached(err)})
		return
	}
	defer outer.Close()
	stopOuter := context.AfterFunc(e.ctx, func() { _ = outer.Close() })
	defer stopOuter()
	if err := relay(inner, outer, name); err != nil {
		e.refused.add(Denial{Kind: DeniedNetwork, Target: hostPort, Why: err.Error()})
	}
}

func whyUndeclared(name string, addr netip.Addr, rules hostRules) string {
	switch kind := special(addr); {
	case name != "" && !rules.knows(name):
		return whyName
	case name != "":
		return "the port is not declared for this name"
	case kind == kindLoopback && !rules.loopback:
		return "this machine's own addresses are not granted"
	case kind != "":
		return "the address is not declared, and it is " + kind
	}
	return "the address is not declared"
}

// forbidden is why a declared name does not lead where it may.
type forbidden struct{ why string }

func (f *forbidden) Error() string { return f.why }

func whyUnreached(err error) string {
	if f, ok := errors.AsType[*forbidden](err); ok {
		return f.why
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return "it cannot be reached: " + dns.Err
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return "it cannot be reached: " + op.Err.Error()
	}
	return "it cannot be reached: " + err.Error()
}

// dial connects to the outside. Each address that a name leads to is judged at
// the moment of connecting, so that a name that changes its mind gains nothing.
func (e *egress) dial(name string, addr netip.Addr, port int) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(e.ctx, dialWait)
	defer cancel()
	host := name
	if name == "" {
		host = addr.String()
	}
	hostPort := net.JoinHostPort(host, strconv.Itoa(port))
	if p, err := e.proxyFor(host, port); err != nil || p != nil {
		if err != nil {
			return nil, err
		}
		return viaProxy(ctx, p, hostPort)
	}
	if addr.IsLoopback() && name == "" && e.rules.permitsName("localhost", port) {
		hostPort = net.JoinHostPort("localhost", strconv.Itoa(port)) // of either family
	}
	d := net.Dialer{Resolver: e.resolver, ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		if name == "" {
			return nil // the address itself is declared
		}
		if why := e.rules.leads(name, to.Addr(), port); why != "" {
			return &forbidden{why}
		}
		return nil
	}}
	return d.DialContext(ctx, "tcp", hostPort)
}

// proxyFor tells the person's proxy for a host, nil for none.
func (e *egress) proxyFor(host string, port int) (*url.URL, error) {
	return e.proxy(&url.URL{Scheme: "https", Host: net.JoinHostPort(host, strconv.Itoa(port))})
}

func (e *egress) proxied(host string, port int) bool {
	p, err := e.proxyFor(host, port)
	return err == nil && p != nil
}

// viaProxy asks an HTTP proxy for a tunnel. What the name leads to is then the
// proxy's to judge.
func viaProxy(ctx context.Context, p *url.URL, hostPort string) (net.Conn, error) {
	at := p.Host
	if p.Port() == "" {
		at = net.JoinHostPort(p.Hostname(), map[string]string{"http": "80", "https": "443"}[p.Scheme])
	}
	var conn net.Conn
	var err error
	switch p.Scheme {
	case "http":
		conn, err = (&net.Dialer{}).DialContext(ctx, "tcp", at)
	case "https":
		conn, err = (&tls.Dialer{}).DialContext(ctx, "tcp", at)
	default:
		return nil, fmt.Errorf("a proxy of kind %q is not supported", p.Scheme)
	}
	if err != nil {
		return nil, fmt.Errorf("proxy %s: %w", p.Redacted(), err)
	}
	if err := tunnel(ctx, conn, p, hostPort); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("proxy %s: %w", p.Redacted(), err)
	}
	return conn, nil
}

func tunnel(ctx context.Context, conn net.Conn, p *url.URL, hostPort string) error {
	if end, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(end)
		defer conn.SetDeadline(time.Time{})
	}
	req := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: hostPort}, Host: hostPort, Header: http.Header{}}
	if u := p.User; u != nil {
		password, _ := u.Password()
		req.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(u.Username()+":"+password)))
	}
	if err := req.Write(conn); err != nil {
		return err
	}
	// One byte at a time: what follows the answer belongs to the tunnel.
	const answerLimit = 16 << 10
	resp, err := http.ReadResponse(bufio.NewReaderSize(oneByte{io.LimitReader(conn, answerLimit)}, 16), req)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("it answered %s", resp.Status)
	}
	return nil
}

// oneByte never reads ahead.
type oneByte struct{ r io.Reader }

func (o oneByte) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	return o.r.Read(p[:1])
}
