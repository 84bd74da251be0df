//go:build !unix

package host

import "os/exec"

// There are no process groups here: only the process itself is ended, and at once.
func asGroup(*exec.Cmd)          {}
func terminateGroup(c *exec.Cmd) { killGroup(c) }

func killGroup(c *exec.Cmd) {
	if c.Process != nil {
		_ = c.Process.Kill()
	}
}

func signalOf(*exec.Cmd) string { return "" }
