package host

import (
	"io"
	"sync"
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
	failed  func(error) // called once, from a goroutine of stdin
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
				s.failed(err)
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
