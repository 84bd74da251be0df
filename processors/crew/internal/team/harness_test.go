package team

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/topics"
)

// tb is implemented by *testing.T and *rapid.T.
type tb interface {
	require.TestingT
	Helper()
}

// The IDs of agents in tests.
const (
	leadID  = "1ead0000-0000-0000-0000-000000000001"
	otherID = "07e20000-0000-0000-0000-000000000002"
)

// harness applies inputs to the row of one crew. The row is encoded and decoded between two inputs, as in a broker.
type harness struct {
	tb      tb
	group   mailbox.Group[*State]
	row     []byte
	now     time.Time
	numbers map[string]int64 // of the senders
	count   int
	log     []logged // all inputs
	effects []mailbox.Effect
}

type logged struct {
	in topics.CrewInput
	at time.Time
}

func newHarness(t tb, change ...func(*Config)) *harness {
	t.Helper()
	var config Config
	for _, f := range change {
		f(&config)
	}
	group, err := Group("harbor", config)
	require.NoError(t, err)
	return &harness{tb: t, group: group, now: time.UnixMilli(1_790_000_000_000).UTC(), numbers: map[string]int64{}}
}

// newCrew returns the harness of a crew that is configured.
func newCrew(t tb, change ...func(*Config)) *harness {
	t.Helper()
	h := newHarness(t, change...)
	h.door(crewbody.Configure{ProjectID: "p1", ProjectName: "Boats", Host: "mill", Cwd: "/src", Repository: "boats"})
	return h
}

// newLead returns the harness of a crew with a lead that is idle.
func newLead(t tb, change ...func(*Config)) *harness {
	t.Helper()
	h := newCrew(t, change...)
	h.spawn(leadID, "lead", "")
	return h
}

// door applies an input without a sender.
func (h *harness) door(body crewbody.Body) []mailbox.Effect {
	h.tb.Helper()
	h.count++
	return h.apply(topics.CrewInput{InputID: fmt.Sprint("in-", h.count), Kind: body.Kind(), Body: crewbody.Encode(body)})
}

// by applies an input of another row.
func (h *harness) by(from string, body crewbody.Body) []mailbox.Effect {
	h.tb.Helper()
	h.numbers[from]++
	return h.apply(topics.CrewInput{
		InputID: fmt.Sprint(from, "/", h.numbers[from]), Kind: body.Kind(), From: from, Number: h.numbers[from],
		Body: crewbody.Encode(body),
	})
}

// apply applies an input and returns its effects.
func (h *harness) apply(in topics.CrewInput) []mailbox.Effect {
	h.tb.Helper()
	h.log = append(h.log, logged{in, h.now})
	effects := h.step(in)
	h.effects = append(h.effects, effects...)
	return effects
}

func (h *harness) step(in topics.CrewInput) []mailbox.Effect {
	h.tb.Helper()
	row := h.state()
	keep, changed, effects := h.group.Step(row, "c1", in, h.now, h.now)
	if !changed {
		return nil
	}
	h.row = nil
	if keep {
		raw, err := Table.Marshal(row)
		require.NoError(h.tb, err)
		require.Less(h.tb, len(raw), 512<<10)
		h.row = raw
	}
	return effects
}

func (h *harness) state() *State {
	h.tb.Helper()
	if h.row == nil {
		return h.group.New()
	}
	s, err := Table.Unmarshal(h.row)
	require.NoError(h.tb, err)
	return s
}

// wait moves the clock and lets the deadlines in that time pass.
func (h *harness) wait(d time.Duration) (all []mailbox.Effect) {
	h.tb.Helper()
	for end := h.now.Add(d); ; {
		due := h.state().DeadlineMs
		if due == 0 || due > end.UnixMilli() {
			h.now = end
			return all
		}
		h.now = time.UnixMilli(max(due, h.now.UnixMilli())).UTC()
		body := crewbody.Due{AtMS: due}
		effects := h.apply(topics.CrewInput{InputID: fmt.Sprint("due-", due), Kind: body.Kind(), Body: crewbody.Encode(body)})
		all = append(all, effects...)
		if next := h.state().DeadlineMs; next != 0 {
			require.Greater(h.tb, next, h.now.UnixMilli(), "the next deadline is in the future")
		}
	}
}

// spawn spawns an agent for a person and makes it idle.
func (h *harness) spawn(id, role, parent string, change ...func(*crewbody.SpawnAsked)) []mailbox.Effect {
	h.tb.Helper()
	in := crewbody.SpawnAsked{AgentID: id, RoleID: role, ParentID: parent}
	for _, f := range change {
		f(&in)
	}
	effects := h.door(in)
	require.NotNil(h.tb, h.state().Roster.Find(id), "%v", eventsOf(effects))
	h.status(id, view.Idle)
	return effects
}

// status is what an agent says about itself.
func (h *harness) status(id, status string) []mailbox.Effect {
	h.tb.Helper()
	return h.by(mailbox.Agent(id), crewbody.AgentChanged{AgentID: id, Status: status, SessionID: "s-" + id})
}

// command applies a command in an agent's text.
func (h *harness) command(id, name string, payload any) []mailbox.Effect {
	h.tb.Helper()
	raw, err := json.Marshal(payload)
	require.NoError(h.tb, err)
	if payload == nil {
		raw = nil
	}
	return h.by(mailbox.Agent(id), crewbody.Command{
		Member: crewbody.Member{AgentID: id, CrewID: "c1"}, SessionID: "s-" + id, Offset: int64(h.count), Name: name, Payload: raw,
	})
}

// create has a lead create an agent, which becomes idle, and returns its ID.
func (h *harness) create(lead, role, task string) string {
	h.tb.Helper()
	h.command(lead, "CREATE_AGENT", map[string]any{"role": role, "task": task})
	members := h.state().Roster.Members
	m := members[len(members)-1]
	require.Equal(h.tb, lead, m.ParentId)
	return m.Id
}

func (h *harness) member(id string) *roster.Member {
	h.tb.Helper()
	m := h.state().Roster.Find(id)
	require.NotNil(h.tb, m)
	return m
}

// mailOf returns the bodies of one kind that effects send to an agent, or to all if the ID is empty.
func mailOf[T crewbody.Body](id string, effects []mailbox.Effect) (list []T) {
	var none T
	for _, e := range effects {
		m, ok := e.(mailbox.Mail)
		if !ok || m.Input.Kind != none.Kind() || id != "" && m.To != mailbox.Agent(id) {
			continue
		}
		body, err := crewbody.Decode[T](m.Input.Body)
		if err != nil {
			panic(err)
		}
		list = append(list, body)
	}
	return list
}

// notes returns what an agent is told, joined.
func notes(id string, effects []mailbox.Effect) string {
	var texts []string
	for _, n := range mailOf[crewbody.Note](id, effects) {
		texts = append(texts, n.Text)
	}
	return strings.Join(texts, "\n")
}

// eventsOf returns the types of the events among effects, in order.
func eventsOf(effects []mailbox.Effect) (types []string) {
	for _, e := range effects {
		if h, ok := e.(topics.CrewEvent); ok {
			types = append(types, h.Type)
		}
	}
	return types
}

// fieldsOf returns the fields of the events of a type.
func fieldsOf(kind string, effects []mailbox.Effect) (list []map[string]any) {
	for _, e := range effects {
		if h, ok := e.(topics.CrewEvent); ok && h.Type == kind {
			var fields map[string]any
			if err := json.Unmarshal(h.Fields, &fields); err != nil {
				panic(err)
			}
			list = append(list, fields)
		}
	}
	return list
}
