package host

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os/exec"
	"runtime"
	"sync"
	"unicode/utf8"
)

// maxUnread is how many bytes an agent may leave unread in its standard input before it is stopped.
const maxUnread = 32 << 20

// stdin writes messages to an agent's standard input in order. Its methods do not wait for the agent.
type stdin struct {
	mu      sync.Mutex
	pipe    io.WriteCloser
	queue   [][]byte
	size    int
	closed  bool
	writing bool
	done    sync.WaitGroup
	failed  func() // called once, from a goroutine of stdin
}

// send writes a message. It returns false if the agent does not read its messages.
func (s *stdin) send(m message) bool {
	m.JSONRPC = "2.0"
	raw := append(encoded(m), '\n')
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return true
	}
	if s.size+len(raw) > maxUnread {
		return false
	}
	s.queue, s.size = append(s.queue, raw), s.size+len(raw)
	if !s.writing {
		s.writing = true
		s.done.Go(s.write)
	}
	return true
}

func (s *stdin) write() {
	for {
		s.mu.Lock()
		if len(s.queue) == 0 || s.closed {
			s.writing = false
			s.mu.Unlock()
			return
		}
		raw := s.queue[0]
		s.queue = s.queue[1:]
		s.mu.Unlock()
		_, err := s.pipe.Write(raw)
		s.mu.Lock()
		s.size -= len(raw)
		ended := s.closed
		if err != nil {
			s.closed, s.writing = true, false
		}
		s.mu.Unlock()
		if err != nil {
			if !ended {
				s.failed()
			}
			return
		}
	}
}

// close closes the pipe. What is not written yet is dropped.
func (s *stdin) close() {
	s.mu.Lock()
	s.closed, s.queue = true, nil
	s.mu.Unlock()
	_ = s.pipe.Close()
}

// maxLine is the size of the longest message of an agent, in bytes.
const maxLine = 16 << 20

var errLine = errors.New("a line of standard output is longer than 16 MiB")

// lines calls handle with each line that is not blank, as valid UTF-8, until the reader ends. The line is only valid during the
// call. The last line needs no line feed. It returns errLine for a line that is too long, and nil at the end.
func lines(from io.Reader, limit int, handle func([]byte)) error {
	r := bufio.NewReaderSize(from, 64<<10)
	var long []byte // the beginning of a line that the buffer does not hold
	for {
		part, err := r.ReadSlice('\n')
		if len(long)+len(part) > limit {
			return errLine
		}
		line := part
		if len(long) > 0 || errors.Is(err, bufio.ErrBufferFull) {
			long = append(long, part...)
			line = long
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			if !utf8.Valid(line) {
				line = bytes.ToValidUTF8(line, []byte("\uFFFD"))
			}
			handle(line)
		}
		if long = long[:0]; cap(long) > 1<<20 {
			long = nil
		}
		if err != nil { // the end, or the pipe is broken
			return nil
		}
	}
}

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
