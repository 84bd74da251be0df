//go:build unix && !linux

package host

import "syscall"

// dieWithParent does nothing: the watcher of the group ends the process.
func dieWithParent(*syscall.SysProcAttr) {}
