package turns

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/internal/testing/kill"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/internal/testing/wiretest"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// A process is killed while every call of its turns waits for approval. Each gate is requested under one ID, each approved
// call is handed out under one ID, and every turn ends in one answer. The gate outlives the process, and like the gate's
// group it answers no repeat of a request.
func TestApprovedCallsSurviveKills(t *testing.T) {
	kill.Guarantees(t, func(t *testing.T, guarantee processors.Guarantee) {
		t.Parallel()
		approveDuringKills(t, guarantee)
	}, processors.ExactlyOnce, processors.AtLeastOnce)
}

func approveDuringKills(t *testing.T, guarantee processors.Guarantee) {
	kills, turns := kill.Size(t, "TURNTABLE_KILLS", 3), kill.Size(t, "TURNTABLE_TURNS", 20)
	c := config{
		agent: testbroker.Agent(), instance: "i1", dir: t.TempDir(), brokers: testbroker.Start(t), guarantee: guarantee,
		child: settings{Approval: true},
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute+time.Duration(kills)*10*time.Second)
	defer cancel()
	require.NoError(t, wiretest.CreateTopics(ctx, c.brokers, c.agent, 2))
	catalog, err := topics.For(c.agent, topics.WithGates())
	require.NoError(t, err)
	gate := startGate(t, c.brokers, catalog)

	load, err := wiretest.StartLoad(ctx, c.brokers, c.agent, wiretest.LoadOptions{
		Turns: turns, Steps: 2, Tools: 3, Concurrency: 4, Ledger: wiretest.NewLedger(), DropRepeats: true,
		Deeds: []wiretest.Deed{wiretest.DeedOK, wiretest.DeedLong},
	})
	require.NoError(t, err)
	var running *instance
	loop := &kill.Loop{
		Seed: 2, Kills: kills, Victims: 1, Work: turns, Clients: load.Wait, Brokers: c.brokers, Agents: []string{c.agent},
		Progress: func() int { return load.Progress().Answered },
		Launch:   func(int) kill.Victim { running = spawn(t, c); return running },
		When: func(random *rand.Rand, _, done int) (int, time.Duration) {
			return done + 1 + random.IntN(1+turns/kills), 20*time.Millisecond + time.Duration(random.IntN(800))*time.Millisecond
		},
		Where: func() string { return fmt.Sprintf("%+v", load.Progress()) },
	}
	loop.Run(ctx, t)
	require.NoError(t, load.Close())
	require.NoError(t, running.Stop())

	report := kept(ctx, t, c)
	require.Equal(t, turns, report.Counts.Messages)

	requests, outcomes := gate.stop()
	require.Len(t, outcomes, 6*turns, "one gate for each call")
	repeats := 0
	for id, n := range requests {
		require.Equal(t, topics.GateApproved, outcomes[id])
		repeats += n - 1
	}
	if guarantee == processors.ExactlyOnce {
		require.Zero(t, repeats)
	}
	t.Logf("%d kills, %d gates, %d repeated requests: %s", kills, len(outcomes), repeats, report)
}

// approver is a gate that approves every request once.
type approver struct {
	t      *testing.T
	client *kgo.Client
	cancel context.CancelFunc
	ended  sync.WaitGroup

	requests map[string]int
	outcomes map[string]topics.GateStatus
}

func startGate(t *testing.T, brokers []string, catalog topics.Catalog) *approver {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumeTopics(catalog.GateRequests.Name()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.FetchMaxWait(20*time.Millisecond))
	require.NoError(t, err)
	_, err = kadm.NewClient(client).CreateTopics(t.Context(), 2, 1, nil, catalog.GateRequests.Name(), catalog.GateOutcomes.Name())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	g := &approver{
		t: t, client: client, cancel: cancel, requests: map[string]int{}, outcomes: map[string]topics.GateStatus{},
	}
	g.ended.Go(func() {
		for ctx.Err() == nil {
			for _, r := range client.PollFetches(ctx).Records() {
				g.answer(ctx, catalog, r)
			}
		}
	})
	t.Cleanup(func() { g.stop() })
	return g
}

func (g *approver) answer(ctx context.Context, catalog topics.Catalog, r *kgo.Record) {
	request := catalog.GateRequests.Codec().Unmarshal(r.Value)
	if request.Err != nil || request.Value.Withdrawn != "" {
		return
	}
	v := request.Value
	if g.requests[v.GateID]++; g.requests[v.GateID] > 1 {
		return
	}
	raw, err := catalog.GateOutcomes.Codec().Marshal(topics.GateOutcome{
		GateID: v.GateID, SessionID: v.SessionID, TurnID: v.TurnID, CallID: v.CallID, Kind: v.Kind, Tool: v.Tool,
		ToolUseID: v.ToolUseID, Status: topics.GateApproved, Cause: topics.CauseHuman, EffectiveArgsSHA256: v.ArgsSHA256,
	})
	if err != nil {
		g.t.Error(err)
		return
	}
	out := &kgo.Record{
		Topic: catalog.GateOutcomes.Name(), Key: r.Key, Value: raw,
		Headers: []kgo.RecordHeader{{Key: topics.HeaderID, Value: []byte(v.GateID + "/outcome")}},
	}
	if err := g.client.ProduceSync(ctx, out).FirstErr(); err != nil && ctx.Err() == nil {
		g.t.Error(err)
		return
	}
	g.outcomes[v.GateID] = topics.GateApproved
}

// stop ends the gate and returns how often each gate was requested, and its outcome.
func (g *approver) stop() (requests map[string]int, outcomes map[string]topics.GateStatus) {
	g.cancel()
	g.ended.Wait()
	g.client.Close()
	return g.requests, g.outcomes
}
