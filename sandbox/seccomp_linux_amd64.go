package sandbox

import "golang.org/x/sys/unix"

// native is the machine that this program is built for.
var native = arch{audit: unix.AUDIT_ARCH_X86_64, x32: true, more: []uint32{unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_LOOKUP_DCOOKIE, unix.SYS_KEXEC_FILE_LOAD}}
