package kafkatest

import "syscall"

// attributes keep a terminal's Ctrl-C from a node. This system cannot kill it once we are gone.
func attributes(detached bool) *syscall.SysProcAttr {
	if detached {
		return &syscall.SysProcAttr{Setsid: true}
	}
	return &syscall.SysProcAttr{Setpgid: true}
}
