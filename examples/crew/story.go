package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// event is what the example reads of a record of {agent}-crew-events.
type event struct {
	kind    string
	subject string
	seq     int64
	fields  fields
}

// fields are the members of all events that the example looks at.
type fields struct {
	AgentID    string   `json:"agentId"`
	ChildID    string   `json:"childId"`
	HolderID   string   `json:"holderId"`
	FilePath   string   `json:"filePath"`
	Files      []string `json:"files"`
	Message    any      `json:"message"` // a text, or an object in bus:message
	Status     string   `json:"status"`
	Outcome    string   `json:"outcome"`
	By         string   `json:"by"`
	RequestID  string   `json:"requestId"`
	SessionID  string   `json:"sessionId"`
	Text       string   `json:"text"`
	Error      string   `json:"error"`
	Code       int      `json:"code"`
	Dangerous  bool     `json:"dangerous"`
	Delegation struct {
		ID     string `json:"id"`
		Task   string `json:"task"`
		Status string `json:"status"`
		Result string `json:"result"`
	} `json:"delegation"`
	Request struct {
		ID        string     `json:"id"`
		ToolName  string     `json:"toolName"`
		Arguments topics.Raw `json:"arguments"`
		Truncated bool       `json:"truncated"` // the arguments are the beginning of the request
	} `json:"request"`
	Agent struct {
		ID   string          `json:"id"`
		Role topics.CrewRole `json:"role"`
	} `json:"agent"`
}

// message is the message of a commit or of an error.
func (f fields) message() string {
	text, _ := f.Message.(string)
	return text
}

// story is what has happened to one crew.
type story struct {
	catalog topics.Catalog
	crew    string
	told    func(event) // called for each event, in the order of its subject

	mu      sync.Mutex
	names   map[string]string // of agents
	last    map[string]int64  // the number of the last event, by subject
	events  []event
	texts   map[string]string // what an agent said, from the events
	written map[string]string // what hosts wrote about an agent
	changed chan struct{}     // closed and replaced when something happens
	broken  error             // the numbers of a subject have a gap
}

func newStory(catalog topics.Catalog, crew string, told func(event)) *story {
	return &story{
		catalog: catalog, crew: crew, told: told, names: map[string]string{}, last: map[string]int64{}, texts: map[string]string{}, written: map[string]string{},
		changed: make(chan struct{}),
	}
}

// follower reads the events and what hosts write about agents.
func (s *story) follower(brokers []string, opts ...processors.Option) (*processors.Follower, error) {
	return processors.NewFollower(brokers, []string{s.catalog.CrewEvents.Name(), s.catalog.CrewAgentInputs.Name()}, s.read, opts...)
}

// updates is the kind of the records in which a host writes what an agent says and does.
const updates = "updates"

func (s *story) read(r processors.Inbound) {
	if r.Topic == s.catalog.CrewAgentInputs.Name() {
		if in := s.catalog.CrewAgentInputs.Codec().Unmarshal(r.Value); in.Err == nil && in.Value.Kind == updates {
			s.happened(func() { s.written[string(r.Key)] += string(in.Value.Body) })
		}
		return
	}
	d := s.catalog.CrewEvents.Codec().Unmarshal(r.Value)
	if d.Err != nil || d.Value.CrewID != s.crew && !strings.HasSuffix(d.Value.Subject, "/"+s.crew) {
		return
	}
	e := event{kind: d.Value.Type, subject: d.Value.Subject, seq: d.Value.Seq}
	if len(d.Value.Fields) > 0 {
		_ = json.Unmarshal(d.Value.Fields, &e.fields) // members of other types are of events that the example does not read
	}
	fresh := false
	s.happened(func() { fresh = s.add(e) })
	if fresh {
		s.told(e)
	}
}

// happened changes the story and wakes those that wait for it.
func (s *story) happened(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	close(s.changed)
	s.changed = make(chan struct{})
}

// add adds an event, unless it is a repeat. All events of a subject belong to the crew of this run.
func (s *story) add(e event) (fresh bool) {
	last := s.last[e.subject]
	if e.seq <= last {
		return false
	}
	if e.seq != last+1 && s.broken == nil {
		s.broken = fmt.Errorf("%w: after event %d of %s comes %d", errUnexpected, last, e.subject, e.seq)
	}
	s.last[e.subject] = e.seq
	s.events = append(s.events, e)
	switch e.kind {
	case "agent:text":
		s.texts[e.fields.AgentID] += e.fields.Text
	case "agent:spawned":
		s.names[e.fields.Agent.ID] = e.fields.Agent.Role.ID
	}
	return true
}

// shortID is what people call an agent without a name: the first 8 characters of its ID.
func shortID(id string) string { return id[:min(8, len(id))] }

// name is what the screen calls an agent.
func (s *story) name(agentID string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if name := s.names[agentID]; name != "" {
		return name
	}
	return shortID(agentID)
}

// text is what an agent has said.
func (s *story) text(agentID string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.texts[agentID]
}

// count returns how many events of a kind satisfy a condition.
func (s *story) count(kind string, is func(fields) bool) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.events {
		if e.kind == kind && is(e.fields) {
			n++
		}
	}
	return n
}

// await waits until something is the case. what says what, for the error.
func (s *story) await(ctx context.Context, what string, is func() bool) error {
	for {
		s.mu.Lock()
		changed, broken := s.changed, s.broken
		found := is()
		s.mu.Unlock()
		switch {
		case broken != nil:
			return broken
		case found:
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%w: %s: %w", errUnexpected, what, context.Cause(ctx))
		}
	}
}

// event waits for an event of a kind that satisfies a condition, and returns the first.
func (s *story) event(ctx context.Context, kind, what string, is func(fields) bool) (found event, err error) {
	err = s.await(ctx, kind+" "+what, func() bool {
		for _, e := range s.events {
			if e.kind == kind && is(e.fields) {
				found = e
				return true
			}
		}
		return false
	})
	return found, err
}

// said waits until an agent has said something.
func (s *story) said(ctx context.Context, agentID, fragment string) error {
	return s.await(ctx, "the agent says "+fragment, func() bool { return strings.Contains(s.texts[agentID], fragment) })
}

// wrote waits until the log has a text of an agent, whether or not a processor has read it.
func (s *story) wrote(ctx context.Context, agentID, fragment string) error {
	return s.await(ctx, "the log has "+fragment, func() bool { return bytes.Contains([]byte(s.written[agentID]), []byte(fragment)) })
}
