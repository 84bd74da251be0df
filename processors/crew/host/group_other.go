//go:build !unix

package host

import "os/exec"

// group has one process. There are no process groups here: what the process starts is not ended with it, and neither is the
// process with a host that is killed.
type group struct{ cmd *exec.Cmd }

func newGroup() (*group, error) { return &group{}, nil }

func (g *group) add(c *exec.Cmd) { g.cmd = c }

// terminate is kill: there is no way to ask a process to end.
func (g *group) terminate() { g.kill() }

func (g *group) kill() {
	if g.cmd != nil && g.cmd.Process != nil {
		_ = g.cmd.Process.Kill()
	}
}

func (g *group) close() { g.kill() }

func signalOf(*exec.Cmd) string { return "" }

const openAtOnce = 0
