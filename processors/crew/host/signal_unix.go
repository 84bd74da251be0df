//go:build unix

package host

import (
	"os/exec"
	"syscall"
)

// asGroup makes a command the leader of a process group of its own, so that what it starts can be ended with it.
func asGroup(c *exec.Cmd) {
	if c.SysProcAttr == nil {
		c.SysProcAttr = &syscall.SysProcAttr{}
	}
	c.SysProcAttr.Setpgid = true
	dieWithParent(c.SysProcAttr)
}

func terminateGroup(c *exec.Cmd) { signalGroup(c, syscall.SIGTERM) }
func killGroup(c *exec.Cmd)      { signalGroup(c, syscall.SIGKILL) }

// signalGroup works also after the leader has ended, as long as the group has a process.
func signalGroup(c *exec.Cmd, s syscall.Signal) {
	if c.Process != nil {
		_ = syscall.Kill(-c.Process.Pid, s)
	}
}

// signalOf is the name of the signal that ended a process, empty if none did.
func signalOf(c *exec.Cmd) string {
	if c.ProcessState == nil {
		return ""
	}
	if status, ok := c.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return status.Signal().String()
	}
	return ""
}
