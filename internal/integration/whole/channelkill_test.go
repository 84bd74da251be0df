package whole

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/turntable-streams/turntable/internal/testing/process"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/bridge"
	"github.com/turntable-streams/turntable/processors/channel/settings"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/topics"
)

// The long form: TURNTABLE_DELEGATIONS=500 TURNTABLE_KILLS=12.
const (
	delegationsVariable = "TURNTABLE_DELEGATIONS"
	channelInstances    = 2
)

// Two processes with the turns, delegations, deliveries and sinks of two agents are killed at random moments, while people on
// four channels hand work off. All events of the platforms arrive twice. Each result is posted where its message came from,
// whole and in order, and nowhere else; what is posted again has the same key.
func TestResultsReachTheirOriginsWhileProcessesAreKilled(t *testing.T) {
	delegations, kills := 40, 3
	if !testbroker.Embedded {
		delegations, kills = 200, 6
	}
	delegations, kills = fromEnv(t, delegationsVariable, delegations), fromEnv(t, killsVariable, kills)
	for _, g := range []processors.Guarantee{processors.AtLeastOnce, processors.ExactlyOnce} {
		t.Run(string(g), func(t *testing.T) { surviveChannelKills(t, g, delegations, kills) })
	}
}

func surviveChannelKills(t *testing.T, guarantee processors.Guarantee, delegations, kills int) {
	s := newSquare(t, guarantee, delegations)
	s.start()
	writing, ctx := errgroup.WithContext(s.ctx)
	writing.Go(func() error {
		for n := range delegations {
			for range 2 { // platforms repeat events
				if err := s.bridge.Receive(ctx, s.message(n)); err != nil {
					return err
				}
			}
		}
		return nil
	})
	random := rand.New(rand.NewPCG(3, uint64(kills)))
	for k := range kills {
		want := (k + 1) * 2 * delegations / (kills + 2)
		require.Eventually(t, func() bool { return len(s.platform.posts()) >= want }, 5*time.Minute, 20*time.Millisecond)
		victim := random.IntN(channelInstances)
		s.kill(victim)
		s.launch(victim)
	}
	require.NoError(t, writing.Wait())
	s.judge()
}

// square is the system under test: the processes, the platform, and the people on it.
type square struct {
	t             *testing.T
	ctx           context.Context
	brokers       []string
	guarantee     processors.Guarantee
	agent, worker string
	delegations   int
	platform      *platform
	bridge        *bridge.Bridge
	to            *processors.KafkaPublisher
	dirs          [channelInstances]string
	running       [channelInstances]*process.Process
}

func newSquare(t *testing.T, guarantee processors.Guarantee, delegations int) *square {
	ctx, cancel := context.WithTimeout(t.Context(), 9*time.Minute)
	t.Cleanup(cancel)
	s := &square{
		t: t, ctx: ctx, brokers: testbroker.Start(t), guarantee: guarantee, agent: testbroker.Agent(), worker: testbroker.Agent(),
		delegations: delegations, platform: newPlatform(t),
	}
	var err error
	s.to, err = processors.NewPublisher(s.brokers)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.to.Close()) })
	current, err := channelSettings(s.agent, channelNames...)
	require.NoError(t, err)
	catalog, err := topics.For(s.agent, topics.WithChannels())
	require.NoError(t, err)
	s.bridge, err = bridge.New(func() *settings.Settings { return current }, s.to, []topics.Catalog{catalog})
	require.NoError(t, err)
	for n := range s.dirs {
		s.dirs[n] = t.TempDir()
	}
	return s
}

// start launches the processes, and the models, which outlive them.
func (s *square) start() {
	ctx, cancel := context.WithCancel(s.ctx)
	var workers errgroup.Group
	for n := range s.running {
		s.launch(n)
	}
	for agent, model := range map[string]think.Func{s.agent: s.handsOff, s.worker: s.works} {
		m, err := think.New(agent, s.to, model)
		require.NoError(s.t, err)
		workers.Go(func() error { return m.Run(ctx, s.brokers) })
	}
	s.t.Cleanup(func() {
		cancel()
		require.NoError(s.t, workers.Wait())
	})
}

func (s *square) launch(n int) {
	s.running[n] = process.Spawn(s.t, childAgent+"="+s.agent, channelWorker+"="+s.worker, channelPlatform+"="+s.platform.URL,
		childBrokers+"="+strings.Join(s.brokers, ","), childDir+"="+s.dirs[n], childInstance+"=p"+strconv.Itoa(n),
		childGuarantee+"="+string(s.guarantee))
}

func (s *square) kill(n int) {
	require.NoError(s.t, s.running[n].Process.Kill())
	<-s.running[n].Ended
}

// message is the n-th message. Rooms of a channel have the same names as those of the others, and so have people and threads.
func (s *square) message(n int) adapter.Inbound {
	o := topics.Origin{
		Channel: channelNames[n%len(channelNames)], Account: "main", MessageID: strconv.Itoa(n), User: "u" + strconv.Itoa(n/4%3),
	}
	switch n / 4 % 5 {
	case 0, 1:
		o.Recipient = o.User
	case 2:
		o.Recipient, o.Group = "room", true
	default:
		o.Recipient, o.Thread, o.Group = "room", "t"+strconv.Itoa(n/20%2), true
	}
	return adapter.Inbound{Event: "e" + strconv.Itoa(n), Origin: o, Text: "job " + job(n), Mentioned: true}
}

// job is the name of the n-th job, which no other one contains.
func job(n int) string { return fmt.Sprintf("<%d>", n) }

// jobIn returns the name of the job that a text is about.
func jobIn(text string) string {
	_, rest, _ := strings.Cut(text, "<")
	number, _, _ := strings.Cut(rest, ">")
	return "<" + number + ">"
}

// handsOff is the model that people talk to. Its calls have the same ID in all turns of a session.
func (s *square) handsOff(_ context.Context, step think.Step) (think.Reply, error) {
	in := step.Input()
	text := topics.Text(in.Content)
	switch {
	case in.Role != nil && *in.Role == "tool":
		return think.Say("working on it"), nil
	case strings.HasPrefix(text, "[From: hand:"):
		_, result, _ := strings.Cut(text, "\n")
		return think.Say(result), nil
	}
	input, err := json.Marshal(map[string]string{"agent_id": s.worker, "message": "do " + jobIn(text)})
	return think.Reply{Blocks: []think.Block{{Call: &think.Call{ID: "call_1", Name: "agent_send_async", Input: input}}}}, err
}

// works is the other model. Its results are longer than a message of the platform.
func (s *square) works(ctx context.Context, step think.Step) (think.Reply, error) {
	rest(ctx)
	return think.Say(result(jobIn(topics.Text(step.Input().Content)))), nil
}

// result is the result of a job.
func result(job string) string {
	var b strings.Builder
	for n := range 12 {
		fmt.Fprintf(&b, "line %02d of job %s.\n", n, job)
	}
	return b.String() + "end of " + job
}
