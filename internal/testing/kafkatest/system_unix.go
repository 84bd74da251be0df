//go:build linux || darwin

package kafkatest

import (
	"os"
	"syscall"
)

const (
	signalStop   = syscall.SIGTERM
	signalPause  = syscall.SIGSTOP
	signalResume = syscall.SIGCONT
)

// tryHold locks a file without waiting. The lock belongs to the open file, so a process that inherits it holds it too.
func tryHold(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
