package host

import (
	"os/exec"
	"runtime"
	"sync"
)

// spawner starts processes from one thread of the operating system: see dieWithParent.
type spawner struct {
	jobs chan job
	done sync.WaitGroup
}

type job struct {
	cmd *exec.Cmd
	err chan error
}

func newSpawner() *spawner {
	s := &spawner{jobs: make(chan job)}
	s.done.Go(func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for j := range s.jobs {
			j.err <- j.cmd.Start()
		}
	})
	return s
}

// start starts a command in a new group.
func (s *spawner) start(c *exec.Cmd) (*group, error) {
	g, err := newGroup()
	if err != nil {
		return nil, err
	}
	g.add(c)
	j := job{c, make(chan error, 1)}
	s.jobs <- j
	if err := <-j.err; err != nil {
		g.close()
		return nil, err
	}
	return g, nil
}

// close returns when the thread is free. start must not be called any more.
func (s *spawner) close() {
	close(s.jobs)
	s.done.Wait()
}
