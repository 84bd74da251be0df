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

// tryLock locks a file without waiting. The lock belongs to the open file, so a process that inherits the file shares it.
func tryLock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
