package sandbox

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// The stage's half of the forwarder: in a network of its own, which has nothing
// but a loopback device, it makes every address local and opens the sockets that
// the parent serves. Nothing of the forwarder runs inside.

const dnsPort = 53

// openForward returns a socket for names and one for each port, in this order.
func openForward(ports []int) ([]int, error) {
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		if err := everythingLocal(family); err != nil && family == unix.AF_INET {
			return nil, fmt.Errorf("setting up the network: %w", err)
		}
	}
	names, err := bound(unix.SOCK_DGRAM, dnsPort)
	if err != nil {
		return nil, fmt.Errorf("opening the port for names: %w", err)
	}
	fds := []int{names}
	for _, port := range ports {
		fd, err := bound(unix.SOCK_STREAM, port)
		if err == nil {
			err = unix.Listen(fd, unix.SOMAXCONN)
		}
		if err != nil {
			return nil, fmt.Errorf("opening port %d: %w", port, err)
		}
		fds = append(fds, fd)
	}
	return fds, nil
}

// bound makes a socket on port of every address, of both families where there
// are two.
func bound(kind, port int) (int, error) {
	fd, err := unix.Socket(unix.AF_INET6, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err == nil {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0)
		if err = unix.Bind(fd, &unix.SockaddrInet6{Port: port}); err == nil {
			return fd, nil
		}
		_ = unix.Close(fd)
	}
	fd, err = unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Port: port}); err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// everythingLocal adds the route "local default dev lo" of one family: a
// connection to any address arrives at our own sockets, with the address that
// was meant still on it.
func everythingLocal(family uint8) error {
	const loopback = 1 // the first device of every network
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	msg := make([]byte, unix.SizeofNlMsghdr+unix.SizeofRtMsg+8)
	le := binary.NativeEndian
	le.PutUint32(msg, uint32(len(msg)))
	le.PutUint16(msg[4:], unix.RTM_NEWROUTE)
	le.PutUint16(msg[6:], unix.NLM_F_REQUEST|unix.NLM_F_ACK|unix.NLM_F_CREATE)
	rt := msg[unix.SizeofNlMsghdr:]
	rt[0], rt[4], rt[5], rt[6], rt[7] = family, unix.RT_TABLE_LOCAL, unix.RTPROT_STATIC, unix.RT_SCOPE_HOST, unix.RTN_LOCAL
	attr := rt[unix.SizeofRtMsg:]
	le.PutUint16(attr, 8)
	le.PutUint16(attr[2:], unix.RTA_OIF)
	le.PutUint32(attr[4:], loopback)
	if err := unix.Sendto(fd, msg, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil {
		return err
	}
	if n < unix.SizeofNlMsghdr+4 {
		return errors.New("no answer")
	}
	if errno := -int32(le.Uint32(answer[unix.SizeofNlMsghdr:])); errno != 0 {
		return unix.Errno(errno)
	}
	return nil
}
