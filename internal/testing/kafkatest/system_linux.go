package kafkatest

import "syscall"

// attributes keep a terminal's Ctrl-C from a node: only we end it, or the kernel once we are gone.
func attributes(detached bool) *syscall.SysProcAttr {
	if detached {
		return &syscall.SysProcAttr{Setsid: true}
	}
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
