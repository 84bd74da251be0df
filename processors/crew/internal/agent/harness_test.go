package agent

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/internal/mailbox"
	"github.com/turntable-streams/turntable/processors/crew/internal/view"
	"github.com/turntable-streams/turntable/topics"
)

// tb is implemented by *testing.T and *rapid.T.
type tb interface {
	require.TestingT
	Helper()
}

const (
	agentID = "11112222-3333-4444-5555-666677778888"
	crewID  = "c1"
	hostID  = "north"
	repo    = "shop"
)

// world applies inputs to the row of one agent, and plays its crew and its host. The row is encoded and decoded between two
// inputs, as in a broker.
type world struct {
	tb      tb
	group   mailbox.Group[*State]
	now     time.Time
	row     []byte
	epoch   int64
	numbers map[string]int64
	logged  []logged
	// last are the effects of the last input, and all those of all.
	last, all []mailbox.Effect
	spawned   crewbody.Spawn
}

// logged is an input of the log with its time.
type logged struct {
	in topics.CrewInput
	at time.Time
}

func newWorld(t tb, config ...Config) *world {
	t.Helper()
	var c Config
	if len(config) > 0 {
		c = config[0]
	}
	group, err := Group("quay", c)
	require.NoError(t, err)
	return &world{
		tb: t, group: group, now: time.UnixMilli(1_790_000_000_000).UTC(), epoch: 100, numbers: map[string]int64{},
		spawned: crewbody.Spawn{
			Member: crewbody.Member{
				AgentID: agentID, CrewID: crewID, ProjectID: "p1", RoleID: "developer", RoleName: "Developer", Model: "m1",
				Provider: "claude", Host: hostID, Cwd: "/src", Repository: repo,
			},
			Task: "build", ParentID: "lead", Prompt: "You are a developer.",
		},
	}
}

// apply applies an input and returns its effects.
func (w *world) apply(l logged) []mailbox.Effect {
	w.tb.Helper()
	row := w.group.New()
	if w.row != nil {
		var err error
		row, err = Table.Unmarshal(w.row)
		require.NoError(w.tb, err)
	}
	keep, changed, effects := w.group.Step(row, agentID, l.in, l.at, l.at)
	if !changed {
		require.Empty(w.tb, effects)
		return nil
	}
	w.row = nil
	if keep {
		var err error
		w.row, err = Table.Marshal(row)
		require.NoError(w.tb, err)
	}
	return effects
}

// write appends an input to the log and applies it.
func (w *world) write(from string, number int64, body crewbody.Body) *world {
	w.tb.Helper()
	l := logged{topics.CrewInput{
		InputID: from + "/in/" + time.Duration(len(w.logged)).String(), Kind: body.Kind(), From: from, Number: number,
		Body: crewbody.Encode(body),
	}, w.now}
	w.logged = append(w.logged, l)
	w.last = w.apply(l)
	w.all = append(w.all, w.last...)
	return w
}

// crew writes an input as the crew does, and host as the host does. door has no sender.
func (w *world) crew(body crewbody.Body) *world {
	w.tb.Helper()
	w.numbers["crew"]++
	return w.write("crew/"+crewID, w.numbers["crew"], body)
}

func (w *world) host(body crewbody.Body) *world {
	w.tb.Helper()
	w.numbers["host"]++
	return w.write("host/"+hostID, w.epoch*mailbox.PerEpoch+w.numbers["host"], body)
}

func (w *world) door(body crewbody.Body) *world {
	w.tb.Helper()
	return w.write("", 0, body)
}

// pass lets time pass, in which the group writes crewbody.Due for every deadline.
func (w *world) pass(d time.Duration) *world {
	w.tb.Helper()
	w.last = nil
	end := w.now.Add(d)
	for count := 0; ; count++ {
		require.Less(w.tb, count, 1000, "the same deadline again and again")
		due := w.state().GetDeadlineMs()
		if due == 0 || due > end.UnixMilli() {
			break
		}
		before := w.last
		w.now = time.UnixMilli(max(due, w.now.UnixMilli())).UTC()
		w.door(crewbody.Due{AtMS: due})
		w.last = append(before, w.last...)
	}
	w.now = end
	return w
}

// beat lets time pass in which the host writes a beat now and then.
func (w *world) beat(d time.Duration) *world {
	w.tb.Helper()
	var all []mailbox.Effect
	for end := w.now.Add(d); w.now.Before(end); {
		w.pass(min(10*time.Second, end.Sub(w.now)))
		all = append(all, w.last...)
		w.host(crewbody.HostBeat{Run: w.run()})
		all = append(all, w.last...)
	}
	w.last = all
	return w
}

// state returns the row, nil if there is none.
func (w *world) state() *State {
	w.tb.Helper()
	if w.row == nil {
		return nil
	}
	s, err := Table.Unmarshal(w.row)
	require.NoError(w.tb, err)
	return s
}

func (w *world) view() view.Agent { return View(agentID, w.state()) }

func (w *world) run() string { return w.state().GetProcess().GetRun() }

// removed reports whether clients are not shown the agent any more.
func removed(s *State, nowMS int64) bool { return s.GetRemovedMs() != 0 && s.GetRemovedMs() <= nowMS }

// spawn spawns the agent, and start brings it to a session and ends its first turn.
func (w *world) spawn() *world {
	w.tb.Helper()
	return w.crew(w.spawned)
}

func (w *world) start() *world {
	w.tb.Helper()
	w.spawn().ready("s1", false)
	w.rest()
	w.last = nil
	return w
}

// rest ends the turn and lets the time pass after which the agent is idle.
func (w *world) rest() *world {
	w.tb.Helper()
	before := w.endTurn().last
	w.pass(idleAfter)
	w.last = append(before, w.last...)
	return w
}

// ready plays a host that starts the agent.
func (w *world) ready(session string, resumed bool) *world {
	w.tb.Helper()
	run := w.run()
	w.host(crewbody.Started{Run: run, Capabilities: topics.Raw(`{"loadSession":true}`)})
	before := w.last
	w.host(crewbody.SessionReady{Run: run, SessionID: session, Resumed: resumed})
	w.last = append(before, w.last...)
	return w
}

func (w *world) endTurn() *world {
	w.tb.Helper()
	return w.host(crewbody.TurnEnded{Run: w.run(), PromptID: w.state().Turn.GetPromptId(), StopReason: "end_turn"})
}

// say plays updates of the agent with text.
func (w *world) say(texts ...string) *world {
	w.tb.Helper()
	var updates []topics.Raw
	for _, text := range texts {
		raw, err := json.Marshal(map[string]any{
			"sessionUpdate": "agent_message_chunk", "content": map[string]string{"type": "text", "text": text},
		})
		require.NoError(w.tb, err)
		updates = append(updates, raw)
	}
	return w.updates(false, updates...)
}

func (w *world) updates(replay bool, updates ...topics.Raw) *world {
	w.tb.Helper()
	return w.host(crewbody.Updates{Run: w.run(), SessionID: w.state().SessionId, Replay: replay, Updates: updates})
}

// exit plays the end of the process.
func (w *world) exit(code int) *world {
	w.tb.Helper()
	return w.host(crewbody.Exited{Run: w.run(), Code: code})
}

// events returns the types of events, without those of some types.
func events(effects []mailbox.Effect, without ...string) (list []string) {
	for _, e := range effects {
		if h, ok := e.(topics.CrewEvent); ok && !strings.Contains(strings.Join(without, " "), h.Type) {
			list = append(list, h.Type)
		}
	}
	return list
}

// fields returns the fields of the events of a type.
func fields(effects []mailbox.Effect, kind string) (list []map[string]any) {
	for _, e := range effects {
		if h, ok := e.(topics.CrewEvent); ok && h.Type == kind {
			var m map[string]any
			if err := json.Unmarshal(h.Fields, &m); err != nil {
				panic(err)
			}
			list = append(list, m)
		}
	}
	return list
}

// bodies returns the inputs and actions of a type.
func bodies[T crewbody.Body](effects []mailbox.Effect) (list []T) {
	var none T
	for _, e := range effects {
		var kind string
		var raw topics.Raw
		switch e := e.(type) {
		case mailbox.Mail:
			kind, raw = e.Input.Kind, e.Input.Body
		case topics.CrewAction:
			kind, raw = e.Kind, e.Body
		}
		if kind != none.Kind() {
			continue
		}
		body, err := crewbody.Decode[T](raw)
		if err != nil {
			panic(err)
		}
		list = append(list, body)
	}
	return list
}

// prompts returns the texts of the prompts that were sent.
func prompts(effects []mailbox.Effect) (texts []string) {
	for _, s := range bodies[crewbody.Send](effects) {
		var blocks []struct{ Type, Text string }
		if err := json.Unmarshal(s.Blocks, &blocks); err != nil {
			panic(err)
		}
		texts = append(texts, blocks[0].Text)
	}
	return texts
}
