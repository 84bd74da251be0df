package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/twmb/franz-go/pkg/kgo"
)

// With -memory, the orchestrator remembers its user across sessions. When a session ends, by inactivity or because the user
// leaves, its conversation goes to the worker that updates the memory. The model of a later session is sent the memory.

// user is the user of the sessions.
const user = "mira"

// The questions of the two sessions.
const (
	toRemember  = "Please remember that my boat is the Alba."
	toAskLater  = "What do you remember about me?"
	nextSession = "-later"
)

var (
	notePattern     = regexp.MustCompile(`(?i)\bremember (?:that )?(my .*?)[.!]?$`)
	rememberPattern = regexp.MustCompile(`(?i)\bwhat do you (?:remember|know)\b`)
)

// snapshot is a record of memoir-context-session-end, as far as the worker reads it.
type snapshot struct {
	MemoirContext string `json:"memoir_context"`
	ThinkResponse struct {
		PreviousMessages []jsontext.Value `json:"previous_messages"`
	} `json:"think_response"`
}

// leave is a record of session-control.
type leave struct {
	Action string `json:"action"`
}

// remember is the worker that updates memories: memoir-context-session-end in, memoir-context out. It plays a model: it keeps
// what the user asked to be remembered, each fact on a line. The headers say on which memory the new one is based, so that the
// updates of two sessions that end together are both kept.
func remember(agent string) role {
	return role{
		group: topicOf(agent, "memoir-updater"),
		topic: topicOf(agent, memoirSnapshots),
		dlq:   topicOf(agent, memoirDLQ),
		answer: func(r *kgo.Record) ([]*kgo.Record, error) {
			var s snapshot
			if err := json.Unmarshal(r.Value, &s); err != nil {
				return nil, fmt.Errorf("no snapshot: %w", err)
			}
			c, err := read(enrichedMessage{History: s.ThinkResponse.PreviousMessages})
			if err != nil {
				return nil, err
			}
			facts := strings.Split(s.MemoirContext, "\n")
			for _, m := range c.messages {
				if fact := noted(m); fact != "" && !slices.Contains(facts, fact) {
					facts = append(facts, fact)
				}
			}
			memory := strings.TrimSpace(strings.Join(facts, "\n"))
			return []*kgo.Record{{
				Topic: topicOf(agent, memoirContext), Key: r.Key, Value: []byte(memory),
				Headers: []kgo.RecordHeader{
					{Key: "turntable.id", Value: []byte(header(r, "turntable.id") + "/memory")},
					{Key: "turntable.memoir-version", Value: []byte(header(r, "turntable.memoir-version"))},
				},
			}}, nil
		},
	}
}

// noted returns what a message asks to be remembered, from the user's point of view: "my boat is the Alba".
func noted(m message) string {
	if m.Role != "user" {
		return ""
	}
	if found := notePattern.FindStringSubmatch(contentText(m.Content)); found != nil {
		return found[1]
	}
	return ""
}

// recall returns what the model knows about its user, from the memory.
func recall(memory string) string {
	if memory == "" {
		return "Nothing yet."
	}
	return strings.ReplaceAll(strings.ReplaceAll("You told me: "+memory+".", "my ", "your "), "\n", "; ")
}

func header(r *kgo.Record, name string) string {
	for _, h := range r.Headers {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return ""
}

// memoryLimit bounds the wait for the memory of a session that has ended.
const memoryLimit = 30 * time.Second

var errMemory = errors.New("the memory was not updated")

// memoirGroup is the group that sends a session's steps with the memory of its user.
const memoirGroup = orchestrator + "-memories"

// rememberAcrossSessions tells the orchestrator a fact, ends the session, and asks for the fact in a new session.
func (a *asker) rememberAcrossSessions(ctx context.Context) error {
	if err := a.ask(ctx, toRemember); err != nil {
		return err
	}
	updated := a.recorder.expectMemory(user)
	record := &kgo.Record{
		Topic: topicOf(orchestrator, sessionControl), Key: []byte(a.recorder.session), Value: encode(leave{Action: "end"}),
	}
	if err := a.recorder.client.ProduceSync(ctx, record).FirstErr(); err != nil {
		return fmt.Errorf("end the session: %w", err)
	}
	a.screen.note(bold, "left", "session %s ends, and its user is remembered", a.recorder.session)
	select {
	case r := <-updated:
		if err := a.recorder.awaitHandled(ctx, memoirGroup, r); err != nil {
			return err
		}
	case <-time.After(memoryLimit):
		return errMemory
	case <-ctx.Done():
		return ctx.Err()
	}
	a.recorder.settle(ctx)
	a.recorder.follow(a.recorder.session + nextSession)
	a.screen.note(bold, "session", "%s, of the same user", a.recorder.session)
	return a.ask(ctx, toAskLater)
}
