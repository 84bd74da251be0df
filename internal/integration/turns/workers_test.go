package turns

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/turntable-streams/turntable/internal/testing/kill"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/internal/testing/wiretest"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/tools"
)

// The turn is killed when the brokers have acknowledged what it wrote for a message, a response or a result, and not yet
// the row that says so. The workers of packages think and tools live on: they have answered, and the turn that starts
// again may read their answers before it knows what they answer. Every message has its output, and neither the model nor
// a tool is called again for what it has answered.
func TestWorkersAnswerTurnsThatLostTheirRows(t *testing.T) {
	const sessions = 20
	rounds := 12
	if short {
		rounds = 5
	}
	kill.Guarantees(t, func(t *testing.T, guarantee processors.Guarantee) {
		t.Parallel()
		c := config{
			agent: testbroker.Agent(), instance: "i1", dir: t.TempDir(), brokers: testbroker.Start(t), guarantee: guarantee,
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		require.NoError(t, wiretest.CreateTopics(ctx, c.brokers, c.agent, 2))
		(&field{T: t, config: c, ctx: ctx}).visible(wiretest.NamesOf(c.agent))
		calls := startWorkers(t, c)
		user, err := wiretest.NewDriver(ctx, c.brokers, c.agent)
		require.NoError(t, err)
		defer func() { require.NoError(t, user.Close()) }()
		options := []wiretest.OracleOption{wiretest.WaitLimit(time.Minute)}
		if guarantee == processors.ExactlyOnce {
			options = append(options, wiretest.ExactlyOnce())
		}
		oracle, err := wiretest.NewOracle(ctx, c.brokers, c.agent, options...)
		require.NoError(t, err)
		defer oracle.Close()

		for round := range rounds {
			names := make([]string, sessions)
			for n := range names {
				names[n] = fmt.Sprintf("s-%d-%d", round, n)
				_, err := user.Say(ctx, wiretest.Say{Session: names[n], Text: "Which berth is free?"}, wiretest.Sent{})
				require.NoError(t, err)
			}
			killedAtRow(t, c, int32(1+round%4)) // of the few that there are where many rows go in one request
			next := spawn(t, c)
			inTime, done := context.WithTimeout(ctx, answerLimit)
			missing := slices.DeleteFunc(names, func(name string) bool {
				return oracle.WaitOutputs(inTime, name, 1) == nil
			})
			done()
			require.Empty(t, missing, "sessions without an output %s after the restart", answerLimit)
			require.NoError(t, next.Stop())
		}
		last := spawn(t, c) // repeats that came after the outputs have to go to the dead letters
		report, err := oracle.Settle(ctx)
		require.NoError(t, err, report.String())
		require.True(t, report.Kept(), report.String())
		require.Equal(t, rounds*sessions, report.Counts.Answers)
		require.EqualValues(t, 2*rounds*sessions, calls.steps.Load(), "the model is asked once for each step")
		require.EqualValues(t, rounds*sessions, calls.tools.Load(), "the tool is called once for each call")
		require.NoError(t, last.Stop())
		t.Logf("%d kills: %s", rounds, report)
	}, processors.ExactlyOnce, processors.AtLeastOnce)
}

// called counts what the workers were asked.
type called struct{ steps, tools atomic.Int64 }

// startWorkers runs the workers of an agent until the test ends: a model that calls a tool and answers with its result.
func startWorkers(t *testing.T, c config) *called {
	t.Helper()
	to, err := processors.NewPublisher(c.brokers)
	require.NoError(t, err)
	count := &called{}
	model, err := think.New(c.agent, to, think.Func(func(_ context.Context, s think.Step) (think.Reply, error) {
		count.steps.Add(1)
		if *s.Input().Role == "tool" {
			return think.Say("Berth N4 is free."), nil
		}
		return think.Reply{Blocks: []think.Block{{Call: &think.Call{ID: s.SessionID + "-call", Name: "berth"}}}}, nil
	}), think.Config{})
	require.NoError(t, err)
	berths, err := tools.NewWorker(c.agent, to, map[string]tools.Func{
		"berth": func(context.Context, tools.Call) (any, error) {
			count.tools.Add(1)
			return "N4", nil
		},
	}, tools.Config{})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	errs := make(chan error, 2)
	running.Go(func() { errs <- model.Run(ctx, c.brokers) })
	running.Go(func() { errs <- berths.Run(ctx, c.brokers) })
	t.Cleanup(func() {
		stop()
		running.Wait()
		require.NoError(t, <-errs)
		require.NoError(t, <-errs)
		require.NoError(t, to.Close())
	})
	return count
}

// killedAtRow starts an instance that is killed when it writes to its changelog for the nth time. The brokers get all
// that was sent before, and this request without its rows.
func killedAtRow(t *testing.T, c config, nth int32) {
	t.Helper()
	changelog := wiretest.NamesOf(c.agent).Group + "-table"
	killedAt(t, c, nth, func(topic string) bool { return strings.HasPrefix(topic, changelog) })
}

// killedAt starts an instance that is killed when it writes to certain topics for the nth time. The brokers get all that was
// sent before, and this request without those topics.
func killedAt(t *testing.T, c config, nth int32, writes func(topic string) bool) {
	t.Helper()
	var victim atomic.Pointer[kill.Process]
	var seen atomic.Int32
	known := make(chan struct{})
	isWritten := func(topic kmsg.ProduceRequestTopic) bool { return writes(topic.Topic) }
	front, addrs := newTap(t, c.brokers, func(request) verdict { return pass }, func(r kmsg.Request) {
		produce, ok := r.(*kmsg.ProduceRequest)
		if !ok || !slices.ContainsFunc(produce.Topics, isWritten) || seen.Add(1) != nth {
			return
		}
		<-known
		_ = victim.Load().KillNow()
		produce.Topics = slices.DeleteFunc(produce.Topics, isWritten)
	})
	c.brokers = addrs
	i := spawn(t, c)
	victim.Store(i.Process)
	close(known)
	_ = i.end(t)
	front.close()
	require.True(t, i.Killed(), i.Logged())
}
