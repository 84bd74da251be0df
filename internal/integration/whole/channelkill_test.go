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

	"github.com/turntable-streams/turntable/internal/testing/kill"
	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/channel"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/topics"
)

const channelInstances = 2

// Two processes with the turns, delegations, deliveries and sinks of two agents are killed at random moments, while people on
// four channels hand work off. All events of the platforms arrive twice. Each result is posted where its message came from,
// whole and in order, and nowhere else; what is posted again has the same key.
func TestResultsReachTheirOriginsWhileProcessesAreKilled(t *testing.T) {
	delegations := kill.Size(t, "TURNTABLE_DELEGATIONS", onBroker(40, 200))
	kill.Guarantees(t, func(t *testing.T, guarantee processors.Guarantee) {
		s, kills := newHandoffWorld(t, guarantee, delegations), kills(t, 3, 6)
		loop := &kill.Loop{
			Seed: 3, Kills: kills, Victims: channelInstances, Launch: s.launch, Judge: s.judge,
			Brokers: s.brokers, Agents: []string{s.agent, s.worker},
			Work: 2 * delegations, Clients: s.handOff, Progress: func() int { return len(s.platform.posts()) },
			When: func(_ *rand.Rand, kill, _ int) (int, time.Duration) {
				return (kill + 1) * 2 * delegations / (kills + 2), 0
			},
		}
		loop.Start()
		s.start()
		loop.Run(s.ctx, t)
	}, processors.AtLeastOnce, processors.ExactlyOnce)
}

// handOff sends all messages, and waits until each has at least its two posts: that the work is handed off, and the result.
func (s *handoffWorld) handOff(ctx context.Context) error {
	for n := range s.delegations {
		for range 2 { // platforms repeat events
			if err := s.bridge.Receive(ctx, s.message(n)); err != nil {
				return err
			}
		}
	}
	for len(s.platform.posts()) < 2*s.delegations && ctx.Err() == nil {
		rest(ctx)
	}
	return context.Cause(ctx)
}

// handoffWorld is the processes, the platform, and the people on it.
type handoffWorld struct {
	*world
	worker      string
	delegations int
	platform    *platform
	bridge      *channel.Bridge
	dirs        []string
}

func newHandoffWorld(t *testing.T, guarantee processors.Guarantee, delegations int) *handoffWorld {
	s := &handoffWorld{
		world: newWorld(t, guarantee, topics.WithChannels()), worker: testbroker.AgentOf(t), delegations: delegations, platform: newPlatform(t),
	}
	s.bridge = must(channel.NewBridge(channel.Fixed(must(channelSettings(s.agent, channelNames...))), s.to, []topics.Catalog{s.catalog}, channel.BridgeConfig{}))
	s.dirs = s.world.dirs(channelInstances)
	// Messages are sent as soon as the processes have started, which does not mean that they have created the topics.
	require.NoError(t, processors.EnsureTopics(s.ctx, s.brokers, processors.WithTopics(s.catalog), processors.WithPartitions(partitions)))
	return s
}

// start starts the models, which outlive the processes.
func (s *handoffWorld) start() {
	s.model(s.agent, s.handsOff)
	s.model(s.worker, s.works)
}

func (s *handoffWorld) launch(n int) kill.Victim {
	c := s.child(s.dirs, n)
	c.Worker, c.Platform = s.worker, s.platform.URL
	return kill.Start(s.t, channelsProgram, c)
}

// message is the n-th message. Rooms of a channel have the same names as those of the others, and so have people and threads.
func (s *handoffWorld) message(n int) adapter.Inbound {
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
func (s *handoffWorld) handsOff(_ context.Context, step think.Step) (think.Reply, error) {
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
func (s *handoffWorld) works(ctx context.Context, step think.Step) (think.Reply, error) {
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
