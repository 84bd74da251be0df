package crew_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/manifest"
	"github.com/turntable-streams/turntable/processors/crew/internal/roster"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/topics"
)

// More agents of the crews of tests.
const (
	sub   = "5b000000-0000-4000-8000-000000000000"
	below = "be100000-0000-4000-8000-000000000000"
)

// newRoster returns a lead with two agents, and a sub-lead with one.
func newRoster() *roster.Roster {
	return &roster.Roster{ProjectId: "p1", Members: []*roster.Member{
		{Id: lead, RoleId: "lead", RoleName: "Project Lead", Status: view.Running, Lead: true, Task: "Ship it"},
		{
			Id: dev, RoleId: "developer", RoleName: "Developer", Status: view.Running, ParentId: lead, Model: "big-model",
			Task: "Write the parser\n== FILE LOCKS ==\n" + strings.Repeat("and more ", 100),
		},
		{Id: tester, RoleId: "tester", RoleName: "QA Tester", Status: view.Idle, ParentId: lead},
		{Id: sub, RoleId: "lead", RoleName: "Sub Lead", Status: view.Running, Lead: true, ParentId: lead, Level: 1},
		{Id: below, RoleId: "writer", RoleName: "Writer", Status: view.Running, ParentId: sub, Task: "Write the README"},
	}}
}

// section returns the lines of a section of a text.
func section(t tb, text, title string) []string {
	t.Helper()
	_, rest, found := strings.Cut(text, "== "+title+" ==\n")
	require.True(t, found, "section %s", title)
	rest, _, _ = strings.Cut(rest, "\n== ")
	var lines []string
	for line := range strings.Lines(rest) {
		line = strings.TrimSuffix(line, "\n")
		if line != "" && !strings.HasPrefix(line, "CREW_") && !strings.HasPrefix(line, "[/CREW") {
			lines = append(lines, line)
		}
	}
	return lines
}

// clock is the part of a crew's row that refreshes. The row is encoded and decoded between steps.
type clock struct {
	tb      tb
	roster  *roster.Roster
	refresh *manifest.Refresh
	box     *mailbox.Mailbox
	now     time.Time
	steps   int64
	news    manifest.News
}

func newClock(t tb) *clock {
	return &clock{tb: t, roster: newRoster(), refresh: &manifest.Refresh{}, box: &mailbox.Mailbox{}, now: noon}
}

// refreshed is the CREW_UPDATEs of a step: their receivers in order, and their bodies.
type refreshed struct {
	to     []string
	bodies []crewbody.Refresh
}

// step does something at a time after noon, and what is due then, twice from the same row.
func (c *clock) step(after time.Duration, do func(*mailbox.Step, *manifest.Refresh)) refreshed {
	c.tb.Helper()
	c.steps++
	c.now = noon.Add(after)
	run := func() (*manifest.Refresh, *mailbox.Mailbox, refreshed) {
		state, box := proto.Clone(c.refresh).(*manifest.Refresh), proto.Clone(c.box).(*mailbox.Mailbox)
		s, ok := mailbox.Begin(box, mailbox.Crew("c1"), topics.CrewInput{
			InputID: fmt.Sprint(c.steps), Kind: "test", From: "agent/a", Number: c.steps,
		}, c.now, c.now)
		require.True(c.tb, ok)
		if do != nil {
			do(s, state)
		}
		state.Due(s, c.roster, c.news)
		out := refreshed{}
		for _, e := range s.Effects {
			m := e.(mailbox.Mail)
			body, err := crewbody.Decode[crewbody.Refresh](m.Input.Body)
			require.NoError(c.tb, err)
			out.to = append(out.to, mailbox.ID(m.To))
			out.bodies = append(out.bodies, body)
		}
		return state, box, out
	}
	_, _, first := run()
	state, box, second := run()
	require.Equal(c.tb, first, second, "a repeated step has the same effects")
	c.refresh, c.box = state, box
	return second
}

// trigger asks for a CREW_UPDATE for all, or for an agent.
func (c *clock) trigger(after time.Duration, agentID string) refreshed {
	c.tb.Helper()
	return c.step(after, func(s *mailbox.Step, f *manifest.Refresh) { f.Trigger(s, agentID) })
}

// due is when the next CREW_UPDATE is due, since noon; negative for never.
func (c *clock) due() time.Duration {
	if ms := c.refresh.DeadlineMS(); ms != 0 {
		return time.UnixMilli(ms).Sub(noon)
	}
	return -1
}
