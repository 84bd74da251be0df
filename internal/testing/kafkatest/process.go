package kafkatest

import (
	"os"
	"os/exec"
	"runtime"
)

// process is a node's process, running or ended.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{}
	// err is the result of Wait. It may be read after ended is closed.
	err error
}

// launch starts cmd, and a goroutine that waits until the process has ended.
func launch(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, ended: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		// With Pdeathsig, Linux kills the child when the thread that started it ends, so the thread must not end earlier.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.ended)
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
		}
	}()
	return p, <-started
}

func (p *process) running() bool {
	if p == nil {
		return false
	}
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// signal returns an error if the process has ended, so it cannot signal another process with the same ID.
func (p *process) signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

func (p *process) kill() error {
	if err := p.cmd.Process.Kill(); err != nil {
		return err
	}
	<-p.ended
	return nil
}
