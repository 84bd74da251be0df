package kafkatest

import "syscall"

// attributes protect a node from the terminal's Ctrl-C. This system cannot kill it when its starter has ended.
func attributes(detached bool) *syscall.SysProcAttr {
	if detached {
		return &syscall.SysProcAttr{Setsid: true}
	}
	return &syscall.SysProcAttr{Setpgid: true}
}
