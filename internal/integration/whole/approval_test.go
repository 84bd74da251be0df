package whole

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/internal/testing/kill"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/gate"
	"github.com/turntable-streams/turntable/topics"
)

// The fates of the calls of each turn, by the tool_use_id.
var fates = []struct{ id, tool, args string }{
	{"looked", "look", `{}`},
	{"approved", "pay", `{"amount":10}`},
	{"edited", "pay", `{"amount":9000}`},
	{"denied", "pay", `{"amount":666}`},
	{"expired", "wait", `{}`},
	{"forbidden", "delete", `{}`},
}

const editedArgs = `{"amount": 90}`

// The process that runs the turns and the gates is killed again and again: between a request and its decision, between the
// decision and its outcome, and between the outcome and the call. Each gate has one outcome, the approved calls run, no other
// call does, and the model is told what happened to each.
func TestApprovalsSurviveKills(t *testing.T) {
	kill.Guarantees(t, func(t *testing.T, guarantee processors.Guarantee) {
		const sessions, kills = 12, 4
		a := newApprovalWorld(t, guarantee)
		loop := &kill.Loop{
			Seed: 3, Kills: kills, Victims: 1, Launch: a.launch, Judge: func() { a.stop(); a.judge(sessions) },
			Brokers: a.brokers, Agents: []string{a.agent},
			Progress: func() int { return a.records(a.catalog.GateOutcomes.Name()) },
			Clients: func(ctx context.Context) error {
				for n := range sessions {
					for a.launched.Load() <= int64((n+1)/(sessions/kills)) && ctx.Err() == nil { // it has one more than there were kills
						rest(ctx)
					}
					session := fmt.Sprint("s", n)
					if err := a.write(ctx, session, "mira", "go on", session); err != nil {
						return err
					}
				}
				for a.distinct(a.catalog.MessageOutput.Name()) < sessions && ctx.Err() == nil {
					rest(ctx)
				}
				return context.Cause(ctx)
			},
			// Some kills meet a process that starts, most one that works.
			When: func(random *rand.Rand, _, done int) (int, time.Duration) {
				return done + 1 + random.IntN(4), time.Duration(1+random.IntN(1500)) * time.Millisecond
			},
		}
		loop.Run(a.ctx, t)
	}, processors.AtLeastOnce, processors.ExactlyOnce)
}

// approvalWorld plays the model, the tools and the people around the turns of an agent. They answer no record twice.
type approvalWorld struct {
	*world
	launched atomic.Int64
	stop     func() // of the reader

	mu   sync.Mutex
	logs map[string][]*kgo.Record
	seen map[string]bool
}

func newApprovalWorld(t *testing.T, guarantee processors.Guarantee) *approvalWorld {
	t.Helper()
	a := &approvalWorld{
		world: newWorld(t, guarantee, topics.WithGates()), logs: map[string][]*kgo.Record{}, seen: map[string]bool{},
	}
	a.run("grants", must(gate.GrantsGraph(a.agent, gate.Config{})))
	c := a.catalog
	reader := must(kgo.NewClient(kgo.SeedBrokers(a.brokers...), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeTopics(c.EnrichedMessageInput.Name(), c.ToolUse.Name(), c.GateRequests.Name(), c.GateOutcomes.Name(),
			c.ToolUseAllComplete.Name(), c.MessageOutput.Name(), c.ToolUseDLQ.Name()),
		kgo.FetchMaxWait(20*time.Millisecond), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())))
	a.stop = a.serve(func(ctx context.Context) error {
		defer reader.Close()
		for ctx.Err() == nil {
			for _, r := range reader.PollFetches(ctx).Records() {
				a.read(r)
			}
		}
		return nil
	})
	return a
}

func (a *approvalWorld) launch(int) kill.Victim {
	a.launched.Add(1)
	return kill.Start(a.t, approvalsProgram, child{Agent: a.agent, Brokers: a.brokers, Guarantee: a.guarantee})
}

// read logs a record, and answers it if it is the first one with its ID.
func (a *approvalWorld) read(r *kgo.Record) {
	id := headerOf(r, topics.HeaderID)
	a.mu.Lock()
	a.logs[r.Topic] = append(a.logs[r.Topic], r)
	again := a.seen[r.Topic+id]
	a.seen[r.Topic+id] = true
	a.mu.Unlock()
	if again {
		return
	}
	session := string(r.Key)
	switch c := a.catalog; r.Topic {
	case c.EnrichedMessageInput.Name():
		asked := c.EnrichedMessageInput.Codec().Unmarshal(r.Value).Value
		publishTo(a, c.ThinkRequestResponse, session, respondTo(asked), id+"/think")
	case c.ToolUse.Name():
		call := c.ToolUse.Codec().Unmarshal(r.Value).Value
		publishTo(a, c.ToolUseResult, session, topics.ToolUseResult{
			ToolUseID: call.ToolUseID, Name: call.Name, Result: topics.Raw(`{"ran":` + string(call.Input) + `}`), Status: new("success"),
		}, id+"/result")
	case c.GateRequests.Name():
		a.decide(session, c.GateRequests.Codec().Unmarshal(r.Value).Value)
	}
}

// respondTo is the model: it asks for the calls, and answers with what came of them.
func respondTo(asked topics.EnrichedMessage) topics.ThinkResponse {
	r := topics.ThinkResponse{PreviousMessages: asked.History, LastInputMessage: asked.LatestInput}
	if bytes.Contains(asked.LatestInput, []byte(`"role":"tool"`)) {
		r.EndTurn, r.LastInputResponse = true, topics.Raw(`[{"role":"assistant","content":"done"}]`)
		return r
	}
	var blocks []string
	for _, f := range fates {
		r.ToolUses = append(r.ToolUses, topics.ToolUseItem{ToolUseID: new(f.id), Name: new(f.tool), Input: topics.Raw(f.args)})
		blocks = append(blocks, fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":%s}`, f.id, f.tool, f.args))
	}
	r.LastInputResponse = topics.Raw(`[{"role":"assistant","content":[` + strings.Join(blocks, ",") + `]}]`)
	return r
}

// decide is the person. Two of them decide about each call, and the first one counts.
func (a *approvalWorld) decide(session string, g topics.GateRequest) {
	d := topics.GateDecision{GateID: g.GateID, SessionID: session, Verdict: topics.VerdictApprove, ArgsSHA256: g.ArgsSHA256, By: "ines"}
	switch g.ToolUseID {
	case "edited":
		d.EditedArgs = topics.Raw(editedArgs)
	case "denied":
		d.Verdict, d.Reason = topics.VerdictDeny, "too much"
	case "approved":
	default:
		return
	}
	for n := range 2 {
		d.DecisionID = fmt.Sprint(g.GateID, "-", n)
		publishTo(a, a.catalog.GateDecisions, session, d, d.DecisionID)
	}
}

func publishTo[T any](a *approvalWorld, topic topics.Topic[T], key string, value T, id string) {
	if err := put(context.WithoutCancel(a.ctx), a.world, topic, key, value, id); err != nil {
		a.t.Error(err)
	}
}

func (a *approvalWorld) records(topic string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.logs[topic])
}

// distinct returns how many IDs the records of a topic have.
func (a *approvalWorld) distinct(topic string) int { return len(a.byID(topic)) }

func (a *approvalWorld) byID(topic string) map[string][]*kgo.Record {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := map[string][]*kgo.Record{}
	for _, r := range a.logs[topic] {
		id := headerOf(r, topics.HeaderID)
		all[id] = append(all[id], r)
	}
	return all
}

// judge checks what the topics say in the end.
func (a *approvalWorld) judge(sessions int) {
	c, repeats := a.catalog, 0
	want := map[string]topics.GateStatus{
		"approved": topics.GateApproved, "edited": topics.GateApproved, "denied": topics.GateDenied,
		"expired": topics.GateTimedOut, "forbidden": topics.GateDenied,
	}
	count := func(topic string) map[string][]*kgo.Record {
		all := a.byID(topic)
		for _, list := range all {
			repeats += len(list) - 1
		}
		return all
	}
	outcomes := map[string]topics.GateOutcome{} // by call
	for _, list := range count(c.GateOutcomes.Name()) {
		for _, r := range list {
			o := c.GateOutcomes.Codec().Unmarshal(r.Value).Value
			if before, ok := outcomes[o.CallID]; ok {
				require.Equal(a.t, before, o, "a gate has one outcome")
			}
			outcomes[o.CallID] = o
			require.Equal(a.t, want[o.ToolUseID], o.Status, o.ToolUseID)
		}
	}
	require.Len(a.t, outcomes, 5*sessions)
	ran := map[string]int{}
	for id, list := range count(c.ToolUse.Name()) {
		call := c.ToolUse.Codec().Unmarshal(list[0].Value).Value
		ran[*call.ToolUseID]++
		if *call.ToolUseID != "looked" {
			require.Equal(a.t, topics.GateApproved, outcomes[id].Status, "nothing runs without an approval")
			require.Equal(a.t, outcomes[id].EffectiveArgsSHA256, topics.ArgsSHA256(call.Input))
		}
	}
	require.Equal(a.t, map[string]int{"looked": sessions, "approved": sessions, "edited": sessions}, ran)
	for _, list := range count(c.ToolUseAllComplete.Name()) {
		results := c.ToolUseAllComplete.Codec().Unmarshal(list[0].Value).Value.Results
		require.Len(a.t, results, len(fates))
		for i, says := range []string{
			`{"ran":{}}`, `{"ran":{"amount":10}}`, `"turntable_approval":{"edited":true`, `the call was refused, because: too much","reason":"denied"`,
			`"reason":"approval_timed_out"`, `the policy does not permit it`,
		} {
			require.Contains(a.t, string(results[i].Result), says)
		}
	}
	for _, list := range count(c.EnrichedMessageInput.Name()) {
		asked := c.EnrichedMessageInput.Codec().Unmarshal(list[0].Value).Value
		if len(asked.History) > len(`[]`) {
			require.Contains(a.t, string(asked.History), `"id":"edited","name":"pay","input":`+editedArgs, "the history has the call as it ran")
		}
	}
	for _, list := range count(c.MessageOutput.Name()) {
		require.Nil(a.t, c.MessageOutput.Codec().Unmarshal(list[0].Value).Value.Error)
	}
	count(c.GateRequests.Name())
	if a.guarantee == processors.ExactlyOnce {
		require.Zero(a.t, repeats)
	}
	a.t.Logf("%d gates, %d calls that ran, %d repeated records", len(outcomes), 3*sessions, repeats)
}
