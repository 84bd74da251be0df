package main

import (
	"context"
	"errors"
	"fmt"
)

// killed kills both processes at the worst time: an agent has said COMMIT, a message is on its way, and nothing has read either.
func (s *stage) killed(ctx context.Context, c *cast) error {
	s.screen.title("The processors are killed, an agent says COMMIT, a person writes a message, and the host is killed")
	if err := s.person.say(ctx, c.writer, commentWish); err != nil {
		return err
	}
	if err := s.story.await(ctx, "parse.go is locked again", func() bool {
		n := 0
		for _, e := range s.story.events {
			if e.kind == "lock:acquired" && e.fields.FilePath == "parse.go" {
				n++
			}
		}
		return n == 2
	}); err != nil {
		return err
	}
	sessions := map[string]string{}
	for _, id := range []string{c.lead, c.writer, c.checker} {
		e, err := s.story.event(ctx, "agent:session_ready", id, func(f fields) bool { return f.AgentID == id })
		if err != nil {
			return err
		}
		sessions[id] = e.fields.SessionID
	}

	s.processors.kill()
	s.screen.line("processors", "were killed with SIGKILL")
	if err := errors.Join(s.mark("parse-locked-again"), s.mark("commit-again")); err != nil {
		return err
	}
	if err := s.story.wrote(ctx, c.writer, commentCommit); err != nil {
		return err
	}
	s.screen.line("developer", "says COMMIT; no one has read it")
	if err := s.person.say(ctx, c.checker, helloWish); err != nil {
		return err
	}
	s.screen.line("person", "writes to the tester: %s", helloWish)
	s.hosts.kill()
	s.screen.line("host", "was killed with SIGKILL, and its agents with it")

	if err := s.startProcessors(ctx); err != nil {
		return err
	}
	s.screen.line("processors", "are started again")
	if err := s.startHost(ctx); err != nil {
		return err
	}
	s.screen.line("host", "is started again")
	for id, session := range sessions {
		if _, err := s.story.event(ctx, "agent:exit", id, func(f fields) bool { return f.AgentID == id }); err != nil {
			return err
		}
		if err := s.story.await(ctx, "the session is continued", func() bool {
			n := 0
			for _, e := range s.story.events {
				if e.kind == "agent:session_ready" && e.fields.AgentID == id && e.fields.SessionID == session {
					n++
				}
			}
			return n == 2
		}); err != nil {
			return err
		}
	}
	if err := s.committed(ctx, c.writer, commentCommit); err != nil {
		return err
	}
	if err := s.story.said(ctx, c.checker, "Hello, I am still here."); err != nil {
		return err
	}
	s.screen.line(s.story.name(c.checker), "says: Hello, I am still here.")
	if n := s.story.count("agent:exit", func(fields) bool { return true }); n != len(sessions) {
		return fmt.Errorf("%w: %d processes have ended, want %d", errUnexpected, n, len(sessions))
	}
	return nil
}
