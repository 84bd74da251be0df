package team

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/topics"
)

// world writes inputs of a crew as its doors, agents and repository do, in an order that a seed decides.
type world struct {
	*harness
	rand *rand.Rand
	text int // the longest text
	ids  int
}

// newWorld returns a world with a lead.
func newWorld(t tb, seed uint64, text int) *world {
	t.Helper()
	h := newLead(t, func(c *Config) { c.MaxAgents = 12 })
	return &world{harness: h, rand: rand.New(rand.NewPCG(seed, 1)), text: text}
}

func pick[T any](w *world, list ...T) T { return list[w.rand.IntN(len(list))] }

// rare returns a status now and then, and else view.Running.
func (w *world) rare(id, status string) string {
	if w.rand.IntN(10) == 0 && id != leadID {
		return status
	}
	return view.Running
}

// words returns a text.
func (w *world) words() string {
	s := strings.Repeat(pick(w, "keel ", "hull ", "mast ", "plank the hull ", "船 "), 1+w.rand.IntN(3))
	if w.rand.IntN(20) == 0 {
		s = strings.Repeat(s, 1+w.rand.IntN(1+w.text/len(s)))
	}
	return s
}

// agent returns the ID of an agent of the crew.
func (w *world) agent(s *State) string {
	members := s.Roster.Members
	if len(members) == 0 {
		return leadID
	}
	if w.rand.IntN(3) == 0 {
		return members[0].Id
	}
	return members[w.rand.IntN(len(members))].Id
}

// move returns the next input.
func (w *world) move(s *State) topics.CrewInput {
	id := w.agent(s)
	kind := w.rand.IntN(12)
	if kind == 3 && w.rand.IntN(5) > 0 {
		kind = 2 // processes end rarely
	}
	switch kind {
	case 0:
		return w.from("", w.ofDoor(s))
	case 1:
		return w.from(mailbox.Agent(id), crewbody.AgentChanged{
			AgentID: id, Status: pick(w, view.Creating, view.Running, view.Running, view.Idle, view.Idle, w.rare(id, view.Completed), w.rare(id, view.Failed)),
		})
	case 2:
		return w.from(mailbox.Agent(id), crewbody.AgentIdle{AgentID: id, Output: w.words(), Heard: w.heard(s)})
	case 3:
		return w.from(mailbox.Agent(id), crewbody.AgentExited{
			AgentID: id, Code: w.rand.IntN(2), Restarting: id == leadID || w.rand.IntN(2) == 0, Output: w.words(), Heard: w.heard(s), Cause: pick(w,
				crewbody.ExitClean, crewbody.ExitCrash, crewbody.ExitTerminated,
				crewbody.ExitHostStopped, crewbody.ExitStart),
		})
	case 4:
		return w.from(mailbox.Agent(id), pick[crewbody.Body](w, crewbody.RestartDue{AgentID: id},
			crewbody.Dropped{AgentID: id, FromID: w.agent(s), Reason: "full"}, crewbody.Compacted{AgentID: id}))
	case 5:
		return w.from("repository/boats", pick[crewbody.Body](w,
			crewbody.LockChanged{
				Action: pick(w, crewbody.LockAcquired, crewbody.LockAcquired, crewbody.LockExpired, crewbody.LockDenied), AgentID: id,
				FilePath: fmt.Sprint(w.words(), w.rand.IntN(9)), Repository: "boats", Reason: w.words(),
			},
			crewbody.Committed{AgentID: id, Commit: "c0ffee", Files: []string{w.words()}, Message: w.words()}))
	default:
		name, payload := w.commandOf(s)
		if w.rand.IntN(2) == 0 {
			id = leadID
		}
		raw, err := json.Marshal(payload)
		if err != nil {
			panic(err)
		}
		return w.from(mailbox.Agent(id), crewbody.Command{
			Member: crewbody.Member{AgentID: id}, Name: name, Payload: raw, Heard: w.heard(s),
		})
	}
}

// heard is the number of an input of the crew that an agent may have heard last.
func (w *world) heard(s *State) int64 {
	return pick(w, 0, s.Mailbox.Sent, s.Mailbox.Sent, s.Mailbox.Sent-int64(w.rand.IntN(10)))
}

// from gives an input its number.
func (w *world) from(from string, body crewbody.Body) topics.CrewInput {
	w.ids++
	in := topics.CrewInput{InputID: fmt.Sprint("w-", w.ids), Kind: body.Kind(), Body: crewbody.Encode(body)}
	if from != "" {
		w.numbers[from]++
		in.From, in.Number = from, w.numbers[from]
	}
	return in
}

func (w *world) ofDoor(s *State) crewbody.Body {
	id := w.agent(s)
	var decisions []string
	for _, d := range s.Decisions {
		if w.rand.IntN(2) == 0 {
			decisions = append(decisions, d.Id)
		}
	}
	return pick[crewbody.Body](w,
		crewbody.SpawnAsked{
			AgentID: fmt.Sprintf("%08x-0000", w.rand.IntN(40)), RoleID: pick(w, "lead", "developer", "secretary", "none"),
			ParentID: pick(w, "", leadID, id), Task: pick(w, "", w.words()), Context: w.words(),
		},
		crewbody.RestartAsked{AgentID: leadID},
		crewbody.SpawnAsked{AgentID: leadID, RoleID: "lead"},
		pick[crewbody.Body](w, crewbody.TerminateAsked{AgentID: id, Reason: w.words()}, crewbody.Say{To: id, Text: w.words()}),
		crewbody.RestartAsked{AgentID: id},
		crewbody.Decide{DecisionIDs: decisions, Action: pick(w, "confirm", "reject", "dismiss")},
		crewbody.QueueHeld{
			Client: pick(w, "a", "b", w.words()), Held: w.rand.IntN(3) > 0, UntilMS: w.now.UnixMilli() + w.rand.Int64N(100_000),
		},
		crewbody.SystemPaused{Paused: w.rand.IntN(2) == 0},
		crewbody.Say{To: pick(w, id, "*", "nobody"), Text: "@" + id[:8] + " " + w.words()},
		crewbody.GroupSay{Group: pick(w, "crew", "keel-team"), Text: w.words()},
		crewbody.Configure{ProjectID: "p1", Host: "mill", Cwd: "/src", Repository: "boats"},
		crewbody.Due{AtMS: w.now.UnixMilli()},
	)
}

func (w *world) commandOf(s *State) (string, map[string]any) {
	id, task := w.agent(s), fmt.Sprint("t", w.rand.IntN(6))
	delegation := "del-none"
	if n := len(s.Delegations); n > 0 {
		delegation = s.Delegations[w.rand.IntN(n)].Id
	}
	one := map[string]any{
		"taskId": task, "role": pick(w, "developer", "tester"), "description": w.words(), "dependsOn": pick(w, nil, []string{"t0"}, []string{"t1", "t2"}),
		"files": pick(w, nil, []string{w.words()[:4]}),
	}
	type m = map[string]any
	commands := []struct {
		name    string
		payload m
	}{
		{"CREATE_AGENT", m{"role": pick(w, "developer", "lead", "tester", "pirate"), "task": pick(w, "", w.words()), "dagTaskId": pick(w, "", task)}},
		{"CREATE_AGENT", m{"role": "developer", "task": w.words()}},
		{"DELEGATE", m{"to": id[:8], "task": w.words(), "context": w.words(), "dagTaskId": pick(w, "", task)}},
		{"DELEGATE", m{"to": id, "task": w.words()}},
		{pick(w, "TERMINATE_AGENT", "QUERY_CREW"), m{"agentId": id, "reason": w.words()}},
		{"CANCEL_DELEGATION", m{"delegationId": delegation}},
		{"CANCEL_DELEGATION", m{"agentId": id}},
		{"COMPLETE_TASK", m{"summary": w.words(), "status": pick(w, "", "failed"), "taskId": pick(w, "", "", task)}},
		{"AGENT_MESSAGE", m{"to": id, "content": w.words()}},
		{"BROADCAST", m{"content": w.words()}},
		{"INTERRUPT", m{"to": id, "content": w.words()}},
		{"CREATE_GROUP", m{"name": pick(w, "crew", w.words()[:4]), "roles": []string{"developer"}}},
		{"GROUP_MESSAGE", m{"group": "crew", "content": w.words()}},
		{"REACT", m{"group": "crew", "emoji": pick(w, "👍", "🚢")}},
		{"ACTIVITY", m{"actionType": w.words()[:4], "summary": w.words(), "details": m{"x": w.words()}}},
		{"DECISION", m{"title": pick(w, "Oak", strings.Repeat("船", 200)), "rationale": w.words()}},
		{"PROGRESS", m{"summary": w.words(), "percent": 5}},
		{"DECLARE_TASKS", m{"tasks": []any{one}}},
		{"ADD_TASK", one},
		{pick(w, "PAUSE_TASK", "RESUME_TASK", "RETRY_TASK", "REOPEN_TASK", "SKIP_TASK", "CANCEL_TASK", "FORCE_READY"), m{"taskId": task}},
		{"ADD_DEPENDENCY", m{"taskId": task, "dependsOn": []string{"t0", "t3"}}},
		{pick(w, "ASSIGN_TASK", "REASSIGN_TASK"), m{"taskId": task, "agentId": id}},
		{pick(w, "QUERY_TASKS", "QUERY_CREW", "LIST_TIMERS", "LIST_GROUPS", "QUERY_PEERS", "HALT_HEARTBEAT", "RESUME_HEARTBEAT"), m{}},
		{"REQUEST_LIMIT_CHANGE", m{"limit": 1 + w.rand.IntN(30), "reason": w.words()}},
		{"SET_TIMER", m{"label": fmt.Sprint(w.rand.IntN(40)), "delay": 5 + w.rand.IntN(100), "message": w.words(), "repeat": w.rand.IntN(2) == 0}},
		{"CANCEL_TIMER", m{"label": fmt.Sprint(w.rand.IntN(40))}},
	}
	if w.rand.IntN(60) == 0 {
		return "RESET_DAG", nil
	}
	c := commands[w.rand.IntN(len(commands))]
	return c.name, c.payload
}

// tick moves the clock, mostly a little.
func (w *world) tick() time.Duration {
	return pick(w, 0, 0, time.Millisecond, time.Second, time.Second, 30*time.Second)
}

// ended reports whether a delegation has ended.
func (d *Delegation) ended() bool {
	return slices.Contains([]string{completed, failed, cancelled}, d.Status)
}
