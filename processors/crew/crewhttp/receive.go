package crewhttp

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"

	ws "github.com/coder/websocket"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/auth"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/permission"
	"github.com/turntable-streams/turntable/processors/internal/entrance"
)

const (
	invalidJSON = "Invalid JSON"
	// maxResumed is how many subjects a frame resumes.
	maxResumed = 10_000
)

// wish is a frame of a client. Members of other types are not needed by the frame's type.
type wish struct {
	Type      string           `json:"type"`
	AgentID   string           `json:"agentId"`
	ProjectID string           `json:"projectId"`
	Text      string           `json:"text"`
	From      map[string]int64 `json:"from"`
	permit
}

// receive handles a frame, or adds it to the backlog. It does not wait for the client to read.
func (s *session) receive(frame []byte) {
	if !s.frames.AllowN(s.handler.config.Clock.Now(), 1) {
		s.client.End(ws.StatusPolicyViolation, reasonTooMany)
		return
	}
	var kind struct {
		Type string `json:"type"`
	}
	if jsontext.Value(frame).Kind() != '{' || json.Unmarshal(frame, &kind) != nil {
		s.client.show(problem(invalidJSON))
		return
	}
	if actions[kind.Type] == nil { // such as resize, which has no effect
		return
	}
	var w wish
	if json.Unmarshal(frame, &w) != nil {
		s.client.show(problem("A member of the frame has the wrong type"))
		return
	}
	if len(w.AgentID) > maxID || len(w.ProjectID) > maxID {
		s.client.show(problem("An ID is too long"))
		return
	}
	if !s.postpone(w, frame) {
		s.carryOut(w)
	}
}

// actions handle frames by their type.
var actions = map[string]func(*session, wish) error{
	"subscribe": (*session).subscribe, "unsubscribe": (*session).unsubscribe, "subscribe-project": (*session).filter,
	"resume": (*session).resume, "input": (*session).input, "permission_response": (*session).permit,
	"queue_open": (*session).openQueue, "queue_closed": (*session).closeQueue,
}

// carryOut handles a frame of a known type.
func (s *session) carryOut(w wish) {
	if err := actions[w.Type](s, w); err != nil {
		s.client.show(problem(err.Error()))
	}
}

// subscribe sends the text of an agent from now on, after what the index has of it; without an agent that of all.
func (s *session) subscribe(w wish) error {
	x, c := s.handler.index, s.client
	x.mu.Lock()
	defer x.mu.Unlock()
	if w.AgentID == "" || w.AgentID == "*" {
		c.all = true
		return nil
	}
	if _, known := c.texts[w.AgentID]; !known && len(c.texts) >= maxSubscriptions {
		return errors.New("too many subscriptions: at most 1000 agents, or all without agentId")
	}
	stream := x.streams.bySubject[mailbox.Agent(w.AgentID)]
	if stream != nil {
		x.showText(stream) // to those who have subscribed
	}
	c.texts[w.AgentID] = struct{}{}
	if stream == nil && x.agents[w.AgentID] == nil || !c.crews.use(x.crewOf(&event{about: w.AgentID})) {
		return nil // it may come into being
	}
	members := []any{"type", "agent:buffer", "agentId", w.AgentID, "data", ""}
	if stream != nil {
		members[5] = Redact(string(stream.text))
		members = append(members, "subject", stream.subject, "seq", stream.last.Seq)
	}
	c.show(entrance.Object(members...))
	return nil
}

func (s *session) unsubscribe(w wish) error {
	s.handler.index.mu.Lock()
	defer s.handler.index.mu.Unlock()
	if w.AgentID == "" || w.AgentID == "*" {
		s.client.all = false
	} else {
		delete(s.client.texts, w.AgentID)
	}
	return nil
}

// filter limits what the client gets to a project and to what belongs to none.
func (s *session) filter(w wish) error {
	x, c := s.handler.index, s.client
	if w.ProjectID != "" {
		x.prepare(func(crew, project string) bool { return project == w.ProjectID && c.crews.use(crew) })
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if c.project = w.ProjectID; w.ProjectID != "" {
		x.greet(c)
	}
	return nil
}

// resume sends the events of each subject after one that the client has, then "resumed", then new events.
func (s *session) resume(w wish) error {
	if len(w.From) > maxResumed {
		return errors.New("too many subjects")
	}
	x, c := s.handler.index, s.client
	x.mu.Lock()
	defer x.mu.Unlock()
	r, replayed := newReplay(c.config), 0
	for _, subject := range slices.Sorted(maps.Keys(w.From)) {
		stream := x.streams.bySubject[subject]
		if stream == nil || !x.concerns(c, stream) {
			r.gap(subject)
			continue
		}
		x.showText(stream)
		replayed += r.repeat(x, c, stream, w.From[subject])
	}
	r.add(entrance.Object("type", "resumed", "replayed", replayed))
	c.replay(r)
	return nil
}

var errForbidden = errors.New("forbidden")

// input gives an agent text as it is, before what else waits for it.
func (s *session) input(w wish) error {
	switch {
	case !s.client.Caller.Can(auth.Write):
		return errForbidden
	case w.Text == "" || len(w.Text) > maxText:
		return errors.New("text is empty or too long")
	}
	row, err := s.row(w.AgentID)
	if err != nil {
		return err
	}
	if s.handler.messages.take(s.visit.Key(), s.handler.config.Clock.Now()) > 0 {
		return errors.New("too many messages: at most 50 per 10 seconds")
	}
	id := "door/" + rand.Text()
	out, err := inputTo(s.handler.topics.CrewAgentInputs, row.view.ID, id,
		crewbody.Prompt{Text: w.Text, Priority: true, FromID: person})
	return s.publish(auth.AuditWrite, row.view.ID, id, out, err)
}

// permit answers a permission request: the newest one of the agent without an ID. An answer to none has no effect.
func (s *session) permit(w wish) error {
	switch {
	case !s.client.Caller.Can(auth.Answer):
		return errForbidden
	case w.Approved == nil || len(w.Reason) > maxPath:
		return errors.New("approved is missing")
	}
	row, err := s.row(w.AgentID)
	if err != nil {
		return nil
	}
	if w.RequestID == "" {
		w.RequestID = permission.Newest(s.handler.index.open(w.AgentID))
	}
	if w.RequestID == "" {
		return nil
	}
	asked, open, _ := s.handler.index.askedBy(context.Background(), w.AgentID, w.RequestID)
	if !open {
		return nil
	}
	read := s.handler.index.shown.Has(s.visit.Key(), asked.ID)
	d, err := w.decision(row.view.ID, asked, read, s.client.Caller, "door/"+rand.Text())
	if err != nil {
		return fmt.Errorf("permission request %s: %w", asked.ID, err)
	}
	out, err := processors.OutboundOf(s.handler.topics.GateDecisions, row.view.ID, d, d.DecisionID)
	return s.publish(auth.AuditAnswer, row.view.ID, w.RequestID, out, err)
}

// publish writes the record of a frame, unless it could not be encoded.
func (s *session) publish(did auth.AuditAction, of, id string, out processors.Outbound, err error) error {
	if err != nil {
		return errBody
	}
	switch err := s.handler.publish(out); {
	case errors.Is(err, processors.ErrTooLarge):
		return errors.New("the frame is too large for a record")
	case err != nil:
		return errors.New("internal server error")
	}
	s.visit.Record(did, of, id, 0)
	return nil
}
