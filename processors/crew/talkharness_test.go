package crew_test

import (
	"encoding/json"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
	"github.com/turntable-streams/turntable/processors/crew/internal/talk"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/topics"
)

// The agents of the crews of tests.
const (
	lead   = "1ead0000-0000-4000-8000-000000000000"
	dev    = "de000001-0000-4000-8000-000000000000"
	dev2   = "de000002-0000-4000-8000-000000000000"
	tester = "7e570000-0000-4000-8000-000000000000"
	gone   = "90e00000-0000-4000-8000-000000000000"
)

var noon = time.UnixMilli(1_790_000_000_000).UTC()

type tb interface {
	require.TestingT
	Helper()
}

// talking is the part of a crew's row that talks. The row is encoded and decoded between steps.
type talking struct {
	tb     tb
	roster *roster.Roster
	talk   *talk.Talk
	box    *mailbox.Mailbox
	now    time.Time
	steps  int
}

func newCrew(t tb) *talking {
	return &talking{tb: t, now: noon, talk: &talk.Talk{}, box: &mailbox.Mailbox{}, roster: &roster.Roster{
		ProjectId: "p1", Members: []*roster.Member{
			{Id: lead, RoleId: "lead", RoleName: "Project Lead", Status: view.Running, Lead: true},
			{Id: dev, RoleId: "developer", RoleName: "Developer", Status: view.Running, ParentId: lead},
			{Id: dev2, RoleId: "developer", RoleName: "Developer", Status: view.Idle, ParentId: lead},
			{Id: tester, RoleId: "tester", RoleName: "QA Tester", Status: view.Idle, ParentId: lead},
			{Id: gone, RoleId: "writer", RoleName: "Writer", Status: view.Completed, ParentId: lead},
		},
	}}
}

// did is the effects of a step.
type did struct {
	tb      tb
	entries []talk.Entry
	effects []mailbox.Effect
}

// step does something in a step, twice from the same row: both must have the same effects.
func (c *talking) step(do func(*mailbox.Step, *talk.Talk) []talk.Entry) did {
	c.tb.Helper()
	c.steps++
	run := func() (*talk.Talk, *mailbox.Mailbox, did) {
		state, box := proto.Clone(c.talk).(*talk.Talk), proto.Clone(c.box).(*mailbox.Mailbox)
		s, ok := mailbox.Begin(box, mailbox.Crew("c1"), topics.CrewInput{
			InputID: "in", Kind: "test", From: "door/1", Number: int64(c.steps),
		}, c.now, c.now)
		require.True(c.tb, ok)
		s.CrewID, s.ProjectID = "c1", "p1"
		entries := do(s, state)
		raw, err := proto.Marshal(state)
		require.NoError(c.tb, err)
		decoded := &talk.Talk{}
		require.NoError(c.tb, proto.Unmarshal(raw, decoded))
		return decoded, box, did{c.tb, entries, s.Effects}
	}
	_, _, first := run()
	state, box, second := run()
	require.Equal(c.tb, first, second, "a repeated step has the same effects")
	c.talk, c.box = state, box
	return second
}

// command has an agent give a command of package command.
func (c *talking) command(from, name string, cmd any) did {
	c.tb.Helper()
	return c.step(func(s *mailbox.Step, t *talk.Talk) []talk.Entry {
		entries, handled := t.Command(s, c.roster, c.roster.Find(from), name, cmd)
		require.True(c.tb, handled)
		return entries
	})
}

func (c *talking) say(said crewbody.Say) did {
	c.tb.Helper()
	return c.step(func(s *mailbox.Step, t *talk.Talk) []talk.Entry { t.Say(s, c.roster, said); return nil })
}

func (c *talking) groupSay(said crewbody.GroupSay) did {
	c.tb.Helper()
	return c.step(func(s *mailbox.Step, t *talk.Talk) []talk.Entry { t.GroupSay(s, c.roster, said); return nil })
}

// end ends an agent.
func (c *talking) end(id string) did {
	c.tb.Helper()
	c.roster.Find(id).Status = view.Terminated
	return c.step(func(s *mailbox.Step, t *talk.Talk) []talk.Entry { t.Ended(s, c.roster, c.roster.Find(id)); return nil })
}

// spawn adds a new agent of the lead.
func (c *talking) spawn(id, role string) did {
	c.tb.Helper()
	m := &roster.Member{Id: id, RoleId: role, RoleName: role, Status: view.Creating, ParentId: lead}
	c.roster.Members = append(c.roster.Members, m)
	return c.step(func(s *mailbox.Step, t *talk.Talk) []talk.Entry { t.Spawned(s, c.roster, m); return nil })
}

// sent returns the inputs of a kind for an agent.
func sent[B crewbody.Body](d did, to string) (bodies []B) {
	var kind B
	for _, e := range d.effects {
		if m, ok := e.(mailbox.Mail); ok && m.To == mailbox.Agent(to) && m.Input.Kind == kind.Kind() {
			b, err := crewbody.Decode[B](m.Input.Body)
			require.NoError(d.tb, err)
			bodies = append(bodies, b)
		}
	}
	return bodies
}

// prompts returns the texts of the prompts for an agent.
func (d did) prompts(to string) (texts []string) {
	for _, p := range sent[crewbody.Prompt](d, to) {
		texts = append(texts, p.Text)
	}
	return texts
}

// note returns the only note for an agent.
func (d did) note(to string) string {
	d.tb.Helper()
	notes := sent[crewbody.Note](d, to)
	require.Len(d.tb, notes, 1)
	return notes[0].Text
}

// receivers returns the agents that got prompts or interrupts, in order.
func (d did) receivers() (ids []string) {
	for _, e := range d.effects {
		if m, ok := e.(mailbox.Mail); ok && m.Input.Kind != (crewbody.Note{}).Kind() {
			ids = append(ids, mailbox.ID(m.To))
		}
	}
	return ids
}

// events returns the fields of the events of a type.
func (d did) events(kind string) (events []map[string]any) {
	for _, e := range d.effects {
		if h, ok := e.(topics.CrewEvent); ok && h.Type == kind {
			var fields map[string]any
			require.NoError(d.tb, json.Unmarshal(h.Fields, &fields))
			events = append(events, fields)
		}
	}
	return events
}

// message returns the only message of the bus.
func (d did) message() view.BusMessage {
	d.tb.Helper()
	var found []view.BusMessage
	for _, e := range d.effects {
		if h, ok := e.(topics.CrewEvent); ok && h.Type == "bus:message" {
			var fields struct {
				Message view.BusMessage `json:"message"`
			}
			require.NoError(d.tb, json.Unmarshal(h.Fields, &fields))
			found = append(found, fields.Message)
		}
	}
	require.Len(d.tb, found, 1)
	return found[0]
}

// members returns the members of a group.
func (c *talking) members(name string) []string {
	c.tb.Helper()
	for _, g := range c.talk.Groups() {
		if g.Name == name {
			return g.MemberIDs
		}
	}
	require.Fail(c.tb, "no group "+name)
	return nil
}
