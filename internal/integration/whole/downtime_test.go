package whole

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/memoir"
	"github.com/turntable-streams/turntable/processors/turn"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/topics"
)

// downtime is a turn that is stopped and started again, while the group of memories, the model and the callers go on.
type downtime struct {
	t         *testing.T
	guarantee processors.Guarantee
	agent     string
	brokers   []string
	topics    topics.Catalog
	to        *processors.KafkaPublisher
	outputs   chan topics.Output
}

func newDowntime(t *testing.T, guarantee processors.Guarantee) *downtime {
	d := &downtime{
		t: t, guarantee: guarantee, agent: testbroker.Agent(), brokers: testbroker.Start(t), outputs: make(chan topics.Output, 100),
	}
	var err error
	d.topics, err = topics.For(d.agent, topics.WithMemoir())
	require.NoError(t, err)
	d.to, err = processors.NewPublisher(d.brokers)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.to.Close()) })
	return d
}

// turn runs the turn until stop is called.
func (d *downtime) turn(opts ...turn.Option) (stop func()) {
	d.t.Helper()
	graph, err := turn.Graph(d.agent, opts...)
	require.NoError(d.t, err)
	p, err := processors.New(d.brokers, graph, processors.WithTopics(d.topics), processors.WithPartitions(gatePartitions),
		processors.WithInstance("turn"), processors.WithGuarantee(d.guarantee), processors.WithTick(20*time.Millisecond))
	require.NoError(d.t, err)
	return d.running(p)
}

func (d *downtime) running(p *processors.Processor) (stop func()) {
	d.t.Helper()
	stop = serve(d.t, p.Run)
	require.Eventually(d.t, func() bool { return p.Health().State == processors.Running }, waitLimit, 5*time.Millisecond)
	return stop
}

// memories runs the group of memories.
func (d *downtime) memories() {
	d.t.Helper()
	graph, err := memoir.Graph(d.agent)
	require.NoError(d.t, err)
	p, err := processors.New(d.brokers, graph, processors.WithTopics(d.topics), processors.WithPartitions(gatePartitions),
		processors.WithInstance("memoir"), processors.WithGuarantee(d.guarantee))
	require.NoError(d.t, err)
	d.running(p)
}

// model starts a model that answers with the number of messages that it was sent.
func (d *downtime) model() {
	d.t.Helper()
	model, err := think.New(d.agent, d.to, think.Func(func(_ context.Context, s think.Step) (think.Reply, error) {
		return think.Say(strconv.Itoa(len(s.Messages))), nil
	}))
	require.NoError(d.t, err)
	serve(d.t, func(ctx context.Context) error { return model.Run(ctx, d.brokers) })
}

// follow follows the outputs.
func (d *downtime) follow() {
	d.t.Helper()
	follower, err := processors.NewFollower(d.brokers, []string{d.topics.MessageOutput.Name()}, func(r processors.Inbound) {
		d.outputs <- d.topics.MessageOutput.Codec().Unmarshal(r.Value).Value
	})
	require.NoError(d.t, err)
	serve(d.t, follower.Run)
	<-follower.Ready()
}

func (d *downtime) say(session, text string) {
	d.t.Helper()
	role, user := "user", "mira"
	m, err := processors.OutboundOf(d.topics.MessageInput, session, topics.Message{
		SessionID: &session, UserID: &user, Role: &role, Content: topics.Raw(strconv.Quote(text)),
	}, "")
	require.NoError(d.t, err)
	require.NoError(d.t, d.to.Publish(d.t.Context(), m))
}

// answer returns the next output.
func (d *downtime) answer() topics.Output {
	d.t.Helper()
	select {
	case out := <-d.outputs:
		return out
	case <-time.After(waitLimit):
		d.t.Fatal("no output")
		return topics.Output{}
	}
}

// pass waits until a time that is given by the clocks of the processors.
func pass(d time.Duration) { <-time.After(d) }

// The next message of a session has been on its topic for longer than the session may be idle, because the turn was down.
func TestSessionWhoseNextMessageWaitsDoesNotEndAfterADowntime(t *testing.T) {
	both(t, func(t *testing.T, guarantee processors.Guarantee) {
		d := newDowntime(t, guarantee)
		const after = 6 * time.Second
		option := turn.WithMemoir(turn.Memoir{After: after})
		stop := d.turn(option)
		d.memories()
		d.model()
		d.follow()
		d.say("s1", "one")
		require.Equal(t, "1", d.answer().Content)
		d.say("s2", "one") // has no other message
		require.Equal(t, "1", d.answer().Content)
		stop()
		d.say("s1", "two")
		pass(after + 500*time.Millisecond)
		d.turn(option)
		require.Equal(t, "3", d.answer().Content, "the model is sent the conversation")
		// Each ends once, when it is idle: exactly once, the inputs end in the markers of transactions then.
		ends := map[string]int{}
		require.Eventually(t, func() bool {
			clear(ends)
			for _, r := range allOf(t.Context(), t, d.brokers, d.topics.SessionEnd.Name()) {
				ends[string(r.Key)]++
			}
			return len(ends) == 2
		}, waitLimit, 50*time.Millisecond)
		require.Equal(t, map[string]int{"s1": 1, "s2": 1}, ends)
	})
}

// The answer of the model was written while the turn was down, and the step timed out meanwhile.
func TestAnswerThatWasWrittenDuringADowntimeIsNotLateAfterIt(t *testing.T) {
	both(t, func(t *testing.T, guarantee processors.Guarantee) {
		d := newDowntime(t, guarantee)
		const timeout = 5 * time.Second
		stop := d.turn(turn.WithThinkTimeout(timeout))
		d.say("s1", "one")
		require.Eventually(t, func() bool {
			return len(allOf(t.Context(), t, d.brokers, d.topics.EnrichedMessageInput.Name())) == 1
		}, waitLimit, 10*time.Millisecond)
		stop()
		d.follow()
		require.NoError(t, d.to.Publish(t.Context(), processors.Outbound{
			Topic: d.topics.ThinkRequestResponse.Name(), Key: "s1",
			Value: []byte(`{"session_id":"s1","last_input_response":[{"role":"assistant","content":"1"}],"end_turn":true}`),
		}))
		pass(timeout + 500*time.Millisecond)
		d.turn(turn.WithThinkTimeout(timeout))
		out := d.answer()
		require.Nil(t, out.Error, "%s", out.Content)
	})
}
