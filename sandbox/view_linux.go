package sandbox

import "slices"

// What of the machine a confined process sees, besides what its policy names.

// systemFolders hold programs and libraries. Those that are links on this
// machine stay links.
var systemFolders = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store"}

// systemFiles are the parts of /etc that programs and TLS libraries read. /etc as
// a whole would show /etc/shadow to root, and /etc/ssl its private keys.
var systemFiles = []string{
	"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/localtime", "/etc/timezone",
	"/etc/os-release", "/etc/lsb-release", "/etc/debian_version", "/etc/redhat-release", "/etc/mime.types", "/etc/protocols", "/etc/services", "/etc/gai.conf", "/etc/host.conf",
	"/etc/ssl/certs", "/etc/ssl/cert.pem", "/etc/ssl/openssl.cnf", "/etc/pki/tls/certs", "/etc/pki/tls/cert.pem", "/etc/pki/tls/openssl.cnf",
	"/etc/pki/ca-trust/extracted", "/etc/crypto-policies", "/etc/ca-certificates", "/etc/ca-certificates.conf", "/etc/fonts",
}

// nameFiles say who and where we are; in a network of its own a process gets
// made ones.
var nameFiles = []string{"/etc/hosts", "/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/passwd", "/etc/group"}

// machineFiles are what of /proc is about the machine and not about processes.
var machineFiles = []string{"/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/loadavg", "/proc/uptime", "/proc/version", "/proc/filesystems",
	"/proc/sys/kernel/osrelease", "/proc/sys/kernel/ostype", "/proc/sys/kernel/random", "/proc/sys/kernel/pid_max", "/proc/sys/vm/overcommit_memory", "/proc/sys/net/core/somaxconn"}

// devices are the harmless ones.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// shownFiles are all single files that a process sees.
func shownFiles() []string { return slices.Concat(systemFiles, nameFiles, machineFiles, devices) }
