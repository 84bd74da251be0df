package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
)

// converse runs real agents. Each line of in is an answer to the oldest permission request, y or n, or a message to the lead. It
// returns when ctx ends or in does.
func (s *stage) converse(ctx context.Context, in io.Reader) error {
	s.screen.title("The agents run " + strings.Join(s.flags.agent, " ") + " in " + string(s.scratch) +
		". Answer permission requests with y or n; anything else goes to the lead. Ctrl+C ends them.")
	if err := s.begin(ctx, s.flags.task); err != nil {
		return err
	}
	lines := make(chan string)
	go func() { // it ends with the program if in is a terminal
		defer close(lines)
		for scanner := bufio.NewScanner(in); scanner.Scan(); {
			select {
			case lines <- strings.TrimSpace(scanner.Text()):
			case <-ctx.Done():
				return
			}
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return nil
		case line, ok := <-lines:
			if !ok {
				return nil
			}
			if err := s.entered(ctx, line); err != nil {
				return err
			}
		}
	}
}

// entered does what a person has entered.
func (s *stage) entered(ctx context.Context, line string) error {
	if line == "" {
		return nil
	}
	if line != "y" && line != "n" {
		return s.person.say(ctx, s.lead, line)
	}
	agent, request, truncated := s.story.open()
	if request == "" {
		s.screen.line("person", "no permission is asked for")
		return nil
	}
	if line == "y" && truncated && s.wholeShown != request {
		whole, err := s.person.whole(ctx, agent, request)
		if err != nil {
			return fmt.Errorf("read the request: %w", err)
		}
		s.wholeShown = request
		s.screen.line(s.story.name(agent), "asks for all of this; enter y again to allow it: %s", whole)
		return nil
	}
	if err := s.person.decide(ctx, agent, request, line == "y"); err != nil {
		return fmt.Errorf("decide: %w", err)
	}
	return nil
}

// read prints what an agent said in a turn.
func (s *stage) read(name, text string) {
	for line := range strings.Lines(strings.TrimSpace(text)) {
		s.screen.line(name, "| %s", strings.TrimRight(line, "\r\n"))
	}
}

// turn returns what an agent has said since the last call.
func (s *story) turn(agentID string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := s.texts[agentID]
	s.texts[agentID] = ""
	return text
}

// open returns the oldest permission request that waits.
func (s *story) open() (agent, request string, truncated bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ended := map[string]bool{}
	for _, e := range s.events {
		if e.kind == "agent:permission_resolved" {
			ended[e.fields.RequestID] = true
		}
	}
	for _, e := range s.events {
		if id := e.fields.Request.ID; e.kind == "agent:permission_request" && !ended[id] {
			return e.fields.AgentID, id, e.fields.Request.Truncated
		}
	}
	return "", "", false
}
