package team

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/topics"
)

// ends are the delegations that have ended, with their statuses.
type ends map[string]string

// check checks what a step did to delegations: one that ends does so once, and with a report if its lead is in the crew.
func (e ends) check(t tb, before, after *State, effects []mailbox.Effect) {
	t.Helper()
	reported := map[any]int{}
	for _, f := range fieldsOf("agent:completion_reported", effects) {
		reported[f["childId"]]++
	}
	for _, f := range fieldsOf("delegation:ended", effects) {
		d := f["delegation"].(map[string]any)
		id, status := d["id"].(string), d["status"].(string)
		require.NotContains(t, e, id, "a delegation ends once")
		e[id] = status
		// A child that is forgotten in the same step had a report before.
		if status != cancelled && after.Roster.Find(d["toAgentId"].(string)).GetParentId() != "" && after.Roster.Find(d["fromAgentId"].(string)) != nil {
			require.Equal(t, 1, reported[d["toAgentId"]], "one report: %v", d)
		}
	}
	for _, d := range before.Delegations {
		if _, ended := e[d.Id]; !ended {
			require.True(t, hasDelegation(after, d.Id), "an active delegation is kept")
		}
	}
	for _, d := range after.Delegations {
		status, ended := e[d.Id]
		require.Equal(t, ended, d.ended())
		if ended {
			require.Equal(t, status, d.Status)
		}
	}
}

func hasDelegation(s *State, id string) bool {
	for _, d := range s.Delegations {
		if d.Id == id {
			return true
		}
	}
	return false
}

func TestEveryDelegationEndsOnceWithOneReport(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, rapid.Uint64().Draw(t, "seed"), 200)
		ended := ends{}
		step := func(in topics.CrewInput) {
			before := w.state()
			effects := w.apply(in)
			ended.check(t, before, w.state(), effects)
		}
		for range rapid.IntRange(1, 80).Draw(t, "moves") {
			step(w.move(w.state()))
			w.now = w.now.Add(w.tick())
		}
		for _, m := range w.state().Roster.Members {
			step(w.from("", crewbody.TerminateAsked{AgentID: m.Id}))
		}
		for due := w.state().DeadlineMs; due != 0 && due < w.now.Add(lostAfter).UnixMilli(); due = w.state().DeadlineMs {
			w.now = time.UnixMilli(max(due, w.now.UnixMilli())).UTC()
			step(w.from("", crewbody.Due{AtMS: due}))
		}
		for _, d := range w.state().Delegations {
			require.True(t, d.ended(), "%v", d)
		}
	})
}

// The test also shows that each command is executed at most once: repeats of an input, at any later time,
// change nothing.
func TestRepeatsChangeNothingAndReplaysAreEqual(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, rapid.Uint64().Draw(t, "seed"), 200)
		begin := len(w.log)
		for range rapid.IntRange(1, 80).Draw(t, "moves") {
			w.apply(w.move(w.state()))
			w.now = w.now.Add(w.tick())
			again := w.log[begin+w.rand.IntN(len(w.log)-begin)]
			if again.in.Kind == (crewbody.Due{}).Kind() {
				continue // it does what is due whenever it is read
			}
			row := string(w.row)
			require.Empty(t, w.step(again.in), "a repeat of %s", again.in.Kind)
			require.Equal(t, row, string(w.row))
		}
		replay := newHarness(t, func(c *Config) { c.MaxAgents = 12 })
		for _, l := range w.log {
			replay.now = l.at
			replay.apply(l.in)
		}
		require.Equal(t, w.row, replay.row)
		require.Equal(t, w.effects, replay.effects)
	})
}

func TestRowFullOfLongTextsStaysSmall(t *testing.T) {
	h := newHarness(t, func(c *Config) { c.MaxAgents = maxAgents })
	h.door(crewbody.Configure{Host: strings.Repeat("h", maxID), Cwd: strings.Repeat("/", maxPath), Repository: strings.Repeat("r", maxID)})
	long := strings.Repeat("船", 5_000)
	h.spawn(leadID, "lead", "")
	fill := func() {
		for range maxDecisions + 5 {
			h.command(leadID, "DECISION", map[string]any{"title": long[:600], "rationale": long})
			h.door(crewbody.Decide{DecisionIDs: []string{h.state().Decisions[0].Id}, Action: "confirm"})
		}
		for i := range 40 {
			h.command(leadID, "SET_TIMER", map[string]any{"label": fmt.Sprint(i), "delay": 86400, "message": long})
			h.command(leadID, "CREATE_GROUP", map[string]any{"name": fmt.Sprint(i), "roles": []string{"developer"}})
			h.command(leadID, "GROUP_MESSAGE", map[string]any{"group": fmt.Sprint(i), "content": long})
			h.by("repository/r", crewbody.LockChanged{
				Action: crewbody.LockAcquired, FilePath: fmt.Sprint(long, i), AgentID: leadID, Reason: long,
			})
			h.command(leadID, "ADD_TASK", map[string]any{"taskId": fmt.Sprint(i), "role": "developer", "description": long})
		}
		for range maxActivities + 5 {
			h.command(leadID, "ACTIVITY", map[string]any{"actionType": long[:600], "summary": long})
		}
	}
	for range maxAgents - 1 {
		id := h.create(leadID, "developer", long)
		h.status(id, view.Idle)
	}
	fill()
	for i, m := range h.state().Roster.Members {
		if i > 0 {
			h.command(m.Id, "COMPLETE_TASK", map[string]any{"summary": long})
			h.by("agent/"+m.Id, crewbody.AgentExited{AgentID: m.Id, Cause: crewbody.ExitClean, Output: long})
		}
	}
	for range maxAgents - 1 {
		h.create(leadID, "developer", long)
	}
	fill()
	require.Greater(t, len(h.row), 300<<10, "the row is as full as it gets")
	require.Less(t, len(h.row), 512<<10)
}

// inputsOfSizes is enough to fill every list of a row. It was 10,000 when the limits were chosen.
const inputsOfSizes = 3_000

func TestRowsStaySmall(t *testing.T) {
	for seed := range uint64(1) {
		w := newWorld(t, seed, 50_000)
		row := w.state()
		largest := 0
		for i := range inputsOfSizes {
			in := w.move(row)
			_, _, effects := w.group.Step(row, "c1", in, w.now, w.now)
			for _, e := range effects {
				if m, ok := e.(mailbox.Mail); ok {
					require.Less(t, len(m.Input.Body), 700<<10)
				}
				if h, ok := e.(topics.CrewEvent); ok {
					require.Less(t, len(h.Fields), 700<<10)
				}
			}
			if i%50 == 0 {
				largest = max(largest, proto.Size(row))
				require.Less(t, proto.Size(row), 512<<10)
			}
			w.now = w.now.Add(w.tick())
		}
		require.Greater(t, largest, 30<<10, "the world is large enough")
		require.LessOrEqual(t, len(row.Mailbox.Heard), 200)
	}
}
