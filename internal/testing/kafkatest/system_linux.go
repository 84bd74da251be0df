package kafkatest

import "syscall"

// attributes protect a node from the terminal's Ctrl-C. Only its starter ends it, or the kernel when the starter has
// ended.
func attributes(detached bool) *syscall.SysProcAttr {
	if detached {
		return &syscall.SysProcAttr{Setsid: true}
	}
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
