//go:build linux && !amd64 && !arm64

package sandbox

// native is empty: no filter is written for this machine, and the back ends that
// need one refuse.
var native arch
