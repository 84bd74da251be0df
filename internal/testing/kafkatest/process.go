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
	// err is how it ended; read it once ended is closed.
	err error
}

// launch starts cmd. A goroutine belongs to the process until it has ended.
func launch(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, ended: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		// Linux ends the child with the thread that started it, so the thread has to last as long.
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

// signal returns an error for a process that was waited for, so that it never reaches another process with the same id.
func (p *process) signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

func (p *process) kill() error {
	if err := p.cmd.Process.Kill(); err != nil {
		return err
	}
	<-p.ended
	return nil
}
