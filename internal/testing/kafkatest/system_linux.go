package kafkatest

import "syscall"

// attributes protect a node from the terminal's Ctrl-C. The kernel kills the node when its starter ends, unless it is
// detached.
func attributes(detached bool) *syscall.SysProcAttr {
	if detached {
		return &syscall.SysProcAttr{Setsid: true}
	}
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
