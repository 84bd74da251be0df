//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// ownGroup protects a process from the terminal's Ctrl-C, so that only its parent ends it.
func setProcessGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
