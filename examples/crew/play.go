package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/turntable-streams/turntable/processors/crew/crewtest"
	"github.com/turntable-streams/turntable/topics"
)

// scripted returns the command lines of the scripted agents. The tester is written in TypeScript if that is possible.
func (s *stage) scripted(ctx context.Context) (map[string][]string, error) {
	var script *crewtest.TypeScript
	switch agent, err := crewtest.InstallTypeScript(ctx, ""); {
	case err == nil:
		script = agent
		s.screen.line("tester", "runs on the TypeScript SDK of ACP, the others on the Go SDK")
	case errors.Is(err, crewtest.ErrNoNode):
		s.screen.line("tester", "runs on the Go SDK of ACP, as the others: node or npm is missing for the TypeScript SDK")
	default:
		s.screen.line("tester", "runs on the Go SDK of ACP, as the others: the TypeScript SDK cannot be installed")
	}
	commands := map[string][]string{}
	for provider, does := range s.marks.scripts() {
		if err := os.Mkdir(does.Store, 0o755); err != nil {
			return nil, err
		}
		var err error
		if provider == checker && script != nil {
			commands[provider], err = script.Command(s.dir, does)
		} else {
			commands[provider], err = crewtest.Command(s.dir, does)
		}
		if err != nil {
			return nil, err
		}
	}
	return commands, nil
}

// cast are the agents by their IDs.
type cast struct{ lead, writer, checker string }

// play plays all steps.
func (s *stage) play(ctx context.Context) error {
	c := &cast{}
	for _, step := range []func(context.Context, *cast) error{
		s.delegates, s.conflict, s.permissions, s.commits, s.killed, s.check,
	} {
		if err := step(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// mark lets the agents go on.
func (s *stage) mark(name string) error { return os.WriteFile(s.marks.path(name), nil, 0o644) }

func (s *stage) delegates(ctx context.Context, c *cast) error {
	s.screen.title("A lead delegates to two specialists")
	if err := s.begin(ctx, "Have a parser written and tested"); err != nil {
		return err
	}
	c.lead = s.lead
	for task, id := range map[string]*string{writeTask: &c.writer, checkTask: &c.checker} {
		e, err := s.story.event(ctx, "agent:delegated", task, func(f fields) bool { return f.Delegation.Task == task })
		if err != nil {
			return err
		}
		*id = e.fields.ChildID
	}
	return nil
}

// locked waits until an agent has locked a path.
func (s *stage) locked(ctx context.Context, agent, path string) error {
	_, err := s.story.event(ctx, "lock:acquired", path, func(f fields) bool { return f.AgentID == agent && f.FilePath == path })
	return err
}

func (s *stage) conflict(ctx context.Context, c *cast) error {
	s.screen.title("Both want the same file")
	if err := s.locked(ctx, c.writer, "parse.go"); err != nil {
		return err
	}
	if err := s.mark("parse-locked"); err != nil {
		return err
	}
	if _, err := s.story.event(ctx, "lock:denied", "parse.go", func(f fields) bool {
		return f.AgentID == c.checker && f.FilePath == "parse.go" && f.HolderID == c.writer
	}); err != nil {
		return err
	}
	if err := s.mark("parse-denied"); err != nil {
		return err
	}
	if err := s.locked(ctx, c.checker, "parse_test.go"); err != nil {
		return err
	}
	return s.mark("test-locked")
}

func (s *stage) permissions(ctx context.Context, c *cast) error {
	s.screen.title("A person allows a command, denies one, and leaves one without an answer")
	for _, q := range []struct {
		agent, command, outcome, said string
		allow, silent                 bool
	}{
		{agent: c.writer, command: vetCommand, outcome: string(topics.GateApproved), said: "The code is vetted.", allow: true},
		{agent: c.checker, command: pushCommand, outcome: string(topics.GateDenied), said: "I push nothing."},
		{agent: c.lead, command: curlCommand, outcome: string(topics.GateTimedOut), said: "No one answered, so I do without it.", silent: true},
	} {
		asked, err := s.story.event(ctx, "agent:permission_request", q.command, func(f fields) bool {
			return f.AgentID == q.agent && strings.Contains(string(f.Request.Arguments), q.command)
		})
		if err != nil {
			return err
		}
		if !q.silent {
			if err := s.person.decide(ctx, q.agent, asked.fields.Request.ID, q.allow); err != nil {
				return err
			}
		}
		end, err := s.story.event(ctx, "agent:permission_resolved", q.command, func(f fields) bool { return f.RequestID == asked.fields.Request.ID })
		if err != nil {
			return err
		}
		if end.fields.Outcome != q.outcome {
			return fmt.Errorf("%w: %s was %s, want %s", errUnexpected, q.command, end.fields.Outcome, q.outcome)
		}
		if err := s.story.said(ctx, q.agent, q.said); err != nil {
			return err
		}
		s.screen.line(s.story.name(q.agent), "says: %s", q.said)
	}
	return nil
}

// committed waits for a commit.
func (s *stage) committed(ctx context.Context, agent, message string) error {
	_, err := s.story.event(ctx, "agent:committed", message, func(f fields) bool { return f.AgentID == agent && f.message() == message })
	return err
}

func (s *stage) commits(ctx context.Context, c *cast) error {
	s.screen.title("Both commit at the same time, each its own file")
	if err := s.mark("commit"); err != nil {
		return err
	}
	if err := errors.Join(s.committed(ctx, c.writer, writeCommit), s.committed(ctx, c.checker, checkCommit)); err != nil {
		return err
	}
	if err := s.mark("committed"); err != nil {
		return err
	}
	for path, agent := range map[string]string{"parse.go": c.writer, "parse_test.go": c.checker} {
		if _, err := s.story.event(ctx, "lock:released", path, func(f fields) bool {
			return f.AgentID == agent && f.FilePath == path
		}); err != nil {
			return err
		}
	}
	for _, task := range []string{writeTask, checkTask} {
		if _, err := s.story.event(ctx, "delegation:ended", task, func(f fields) bool {
			return f.Delegation.Task == task && f.Delegation.Status == "completed"
		}); err != nil {
			return err
		}
	}
	return s.story.said(ctx, c.lead, "I have read the report.")
}

// check compares the end with what the play promises.
func (s *stage) check(ctx context.Context, c *cast) error {
	s.screen.title("What is left")
	history, err := s.scratch.history(ctx)
	if err != nil {
		return err
	}
	for _, h := range history {
		s.screen.line("git log", "%s, by %s: %s", h.subject, h.author, strings.Join(h.files, ", "))
	}
	subjects := make([]string, 0, len(history))
	for _, h := range history {
		subjects = append(subjects, h.subject)
		if h.subject != "Begin" && len(h.files) != 1 {
			return fmt.Errorf("%w: the commit %q has the files %v", errUnexpected, h.subject, h.files)
		}
	}
	slices.Sort(subjects)
	if want := []string{writeCommit, "Begin", commentCommit, checkCommit}; !slices.Equal(subjects, want) {
		return fmt.Errorf("%w: the commits are %q, want %q", errUnexpected, subjects, want)
	}
	if n := strings.Count(s.story.text(c.checker), "Hello, I am still here."); n != 1 {
		return fmt.Errorf("%w: the tester answered %d times", errUnexpected, n)
	}
	if n := s.story.count("delegation:ended", func(fields) bool { return true }); n != 2 {
		return fmt.Errorf("%w: %d delegations have ended, want 2", errUnexpected, n)
	}
	if n := s.story.count("agent:permission_resolved", func(fields) bool { return true }); n != 3 {
		return fmt.Errorf("%w: %d permissions were decided, want 3", errUnexpected, n)
	}
	return s.story.await(ctx, "events without gaps", func() bool { return true })
}
