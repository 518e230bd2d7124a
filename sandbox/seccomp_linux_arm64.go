package sandbox

import "golang.org/x/sys/unix"

// native is the machine that this program is built for.
var native = arch{audit: unix.AUDIT_ARCH_AARCH64, more: []uint32{unix.SYS_LOOKUP_DCOOKIE, unix.SYS_KEXEC_FILE_LOAD}}
