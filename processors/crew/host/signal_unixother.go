//go:build unix && !linux

package host

import "syscall"

// dieWithParent does nothing: agents end when their standard input is closed, which the end of the host does.
func dieWithParent(*syscall.SysProcAttr) {}
