package mount

import "syscall"

func mountTmpfs(dir, options string) error { return syscall.Mount("tmpfs", dir, "tmpfs", 0, options) }

func unmountTmpfs(dir string) { syscall.Unmount(dir, syscall.MNT_DETACH) }
