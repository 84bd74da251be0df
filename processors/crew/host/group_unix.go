//go:build unix

package host

import (
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"sync"
	"syscall"
)

// group is a process group for a command and all that it starts. Its first process is a watcher of the host's own. The ID of the
// group is that of the watcher, which is reaped last: no signal reaches a later group with the same ID.
type group struct {
	watcher *exec.Cmd
	pipe    *os.File // the host's end of the watcher's input
	mark    string   // the variable in the environment of the command and of all that it starts

	mu     sync.Mutex
	closed bool
}

// sweep kills the processes that have the variable of a run in their environment, as far as /proc shows it. So processes end that have
// left the group, such as the shells of agents that call setsid. It looks again as long as it finds some, because they may fork.
const sweep = `n=0; while [ $n -lt 20 ]; do left=$(grep -ls "$1" /proc/[0-9]*/environ); [ -n "$left" ] || break; n=$((n+1)); ` +
	`for p in $left; do p=${p#/proc/}; kill -KILL "${p%/environ}" 2>/dev/null; done; done`

// watch kills its own group, and what sweep finds, when its input ends, because the host has ended. A host that is killed cannot do that
// itself. The signals with which agents end their own group do not end the watcher. It writes a line when that is so.
const watch = `trap '' HUP INT QUIT PIPE ALRM TERM USR1 USR2 TSTP TTIN TTOU; echo; read -r line; ` + sweep + `; kill -KILL 0`

// newGroup returns a group without a command. Call close after the command was waited for.
func newGroup() (*group, error) {
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = theirs.Close() }()
	mark := "TURNTABLE_RUN=" + rand.Text()
	c := exec.Command("/bin/sh", "-c", watch, "sh", mark)
	c.Stdin, c.Dir, c.Env = theirs, "/", []string{}
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		_ = ours.Close()
		return nil, errors.New("start the watcher of a process group: " + err.Error())
	}
	g := &group{watcher: c, pipe: ours, mark: mark}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		g.close()
		return nil, errors.New("the watcher of a process group ended at once: " + c.ProcessState.String())
	}
	_ = out.Close()
	return g, nil
}

// add makes the group that of a command that is started next.
func (g *group) add(c *exec.Cmd) {
	c.Env = append(c.Environ(), g.mark)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: g.watcher.Process.Pid}
	dieWithParent(c.SysProcAttr)
}

// terminate asks the processes of the group to end, and kill ends them.
func (g *group) terminate() { g.signal(syscall.SIGTERM) }
func (g *group) kill()      { g.signal(syscall.SIGKILL) }

func (g *group) signal(s syscall.Signal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		_ = syscall.Kill(-g.watcher.Process.Pid, s)
	}
}

// close kills what is left of the group or has left it, and waits for the watcher. Later signals have no effect.
func (g *group) close() {
	g.kill()
	left := exec.Command("/bin/sh", "-c", sweep, "sh", g.mark)
	left.Env = []string{}
	_ = left.Run()
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	_ = g.pipe.Close()
	_ = g.watcher.Wait()
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

// openAtOnce keeps the opening of a pipe from waiting for its other end.
const openAtOnce = syscall.O_NONBLOCK
