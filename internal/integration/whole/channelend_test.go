package whole

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/channel"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/delegation"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/topics"
)

// A channel is removed from the settings after a task was handed off on it.
func TestResultForARemovedChannelIsADeadDelivery(t *testing.T) {
	both(t, func(t *testing.T, g processors.Guarantee) {
		d := newChannelWorld(t, g)
		d.holdBack()
		d.start()
		gone, other := dm("slack", "ada"), dm("telegram", "ada")
		d.say(gone, "delegate one")
		d.say(other, "delegate two")
		d.gets(gone, dispatched)
		d.gets(other, dispatched)
		d.inFlight(2)
		d.configure("telegram", "irc")
		d.release()
		d.gets(other, dispatched, "result of two")
		var dead []topics.DeadDelivery
		d.eventually(func() bool {
			dead = valuesOf(d.world, d.catalogs[d.front].DeliveryDLQ)
			return len(dead) > 0
		})
		require.Equal(t, "refused: "+channel.ReasonNoChannel, dead[0].Reason)
		require.Contains(t, dead[0].Delivery.Body.String(), "result of one")
		origin, err := topics.DecodeOrigin(topics.OriginOf(dead[0].Delivery.Channel))
		require.NoError(t, err)
		require.True(t, origin.SamePlace(gone))
		end := d.ended(func(v topics.Delegation) bool { return v.Result == "result of one" })
		require.Equal(t, topics.DelegationCompleted, end.Status, "it can be read")
		d.gets(gone, dispatched)
		d.gets(other, dispatched, "result of two")
		d.only(gone, other)
		require.Len(t, dead, 1)
	})
}

// The output of the task and the reply of its agent are there twice.
func TestRepeatedCompletionIsAnnouncedOnce(t *testing.T) {
	both(t, func(t *testing.T, g processors.Guarantee) {
		d := newChannelWorld(t, g).start()
		o := dm("slack", "ada")
		d.say(o, "delegate one")
		d.gets(o, dispatched, "result of one")
		for _, topic := range []string{d.catalogs[d.back].MessageOutput.Name(), d.catalogs[d.front].DelegationReplies.Name()} {
			for _, r := range d.all(topic) {
				d.repeat(r)
			}
		}
		d.say(o, "delegate two")
		d.gets(o, dispatched, "result of one", dispatched, "result of two")
		ends := map[string]int{}
		for _, v := range valuesOf(d.world, d.catalogs[d.front].DelegationStatus) {
			if v.Status != topics.DelegationOpen {
				ends[v.CallbackID]++
			}
		}
		require.Len(t, ends, 2)
		for id, n := range ends {
			require.Equal(t, 1, n, id)
		}
		d.only(o)
	})
}

// repeat writes a record again.
func (d *channelWorld) repeat(r *kgo.Record) {
	d.t.Helper()
	out := processors.Outbound{Topic: r.Topic, Key: string(r.Key), Value: r.Value, Headers: map[string][]byte{}}
	for _, h := range r.Headers {
		out.Headers[h.Key] = h.Value
	}
	require.NoError(d.t, d.to.Publish(d.t.Context(), out))
}

// No model of the target runs.
func TestTaskOfAnAgentWithoutWorkersTimesOut(t *testing.T) {
	both(t, func(t *testing.T, g processors.Guarantee) {
		d := newChannelWorld(t, g)
		delete(d.scripts, d.back)
		d.delegation.Deadline = 300 * time.Millisecond
		d.start()
		o := dm("slack", "ada")
		d.say(o, "delegate one")
		end := d.ended(func(topics.Delegation) bool { return true })
		require.Equal(t, topics.DelegationTimedOut, end.Status)
		require.Empty(t, end.Result)
		d.gets(o, dispatched, end.Error)
		require.Contains(t, end.Error, "300ms")
		d.only(o)
	})
}

// An agent that is not known gets no task, and the model is told.
func TestTaskForAnUnknownAgentIsRefused(t *testing.T) {
	d := newChannelWorld(t, processors.AtLeastOnce)
	d.delegation.Agents = []string{d.front}
	d.start()
	o := dm("slack", "ada")
	d.say(o, "delegate one")
	d.gets(o, "unknown_agent")
}

// Policies for what people write do not apply to results.
func TestGroupPolicyDoesNotDropResults(t *testing.T) {
	d := newChannelWorld(t, processors.AtLeastOnce)
	d.configure("slack, group: mention_only")
	d.start()
	o := room("slack", "harbor", "t1", "ada")
	d.say(o, "delegate none", func(in *adapter.Inbound) { in.Mentioned = false })
	d.say(o, "delegate one")
	d.gets(o, dispatched, "result of one")
	require.Len(t, d.seen(), 3)
}

func TestRateLimitDoesNotDropResults(t *testing.T) {
	d := newChannelWorld(t, processors.AtLeastOnce)
	d.configure("slack, rate_limit: 1")
	d.holdBack()
	d.start()
	o := dm("slack", "ada")
	d.say(o, "delegate one")
	d.gets(o, dispatched)
	d.say(o, "hello?")
	const slow = "You are sending messages too fast. Please wait a minute, then send your message again."
	d.gets(o, dispatched, slow)
	d.release()
	d.gets(o, dispatched, slow, "result of one")
}

func TestCallbackTurnDelegatesUpToTheDepthLimit(t *testing.T) {
	both(t, func(t *testing.T, g processors.Guarantee) {
		d := newChannelWorld(t, g)
		d.delegation.DepthLimit = 3
		d.start()
		o := room("slack", "harbor", "t1", "ada")
		d.say(o, "delegate say again: say again: say again: say again: end")
		d.gets(o, dispatched, dispatched, dispatched, "too_deep")
		d.only(o)
		depths := map[int64]bool{}
		for _, v := range valuesOf(d.world, d.catalogs[d.front].DelegationStatus) {
			depths[v.Depth] = true
		}
		require.Equal(t, map[int64]bool{1: true, 2: true, 3: true}, depths)
	})
}

// Two agents hand the same task to each other.
func TestRecursionOfDelegationsIsBounded(t *testing.T) {
	d := newChannelWorld(t, processors.AtLeastOnce)
	loop := func(to string) think.Func {
		return func(ctx context.Context, step think.Step) (think.Reply, error) {
			if in := step.Input(); in.Role != nil && *in.Role == "tool" {
				return think.Say(afterCall(in)), nil
			}
			if strings.HasPrefix(topics.Text(step.Input().Content), "[From: hand:") {
				return think.Say("done"), nil
			}
			return call(delegation.SendTool, map[string]string{"agent_id": to, "message": "loop"})
		}
	}
	d.scripts[d.front], d.scripts[d.back] = loop(d.back), loop(d.front)
	d.start()
	o := dm("slack", "ada")
	d.say(o, "loop")
	d.gets(o, dispatched, "done")
	d.eventually(func() bool {
		for _, name := range []string{d.front, d.back} {
			for _, r := range valuesOf(d.world, d.catalogs[name].ToolUseResult) {
				if strings.Contains(r.Result.String(), "too_deep") {
					return true
				}
			}
		}
		return false
	})
	var opened int
	for _, name := range []string{d.front, d.back} {
		ids := map[string]bool{}
		for _, v := range valuesOf(d.world, d.catalogs[name].DelegationStatus) {
			ids[v.SessionID+v.CallbackID] = true
		}
		opened += len(ids)
	}
	require.Equal(t, 5, opened)
	d.only(o)
}

// A task is cancelled by the conversation that handed it off, and by no other.
func TestCancelledTaskIsStoppedAndAnnounced(t *testing.T) {
	both(t, func(t *testing.T, g processors.Guarantee) {
		d := newChannelWorld(t, g)
		d.holdBack()
		d.start()
		o, other := dm("slack", "ada"), dm("slack", "bob")
		d.say(o, "delegate one")
		d.gets(o, dispatched)
		d.inFlight(1)
		id := valuesOf(d.world, d.catalogs[d.front].DelegationStatus)[0].CallbackID
		d.say(other, "cancel "+id)
		d.gets(other, "not_found")
		d.say(o, "cancel "+id)
		d.eventually(func() bool { return len(d.wall.at(o)) == 3 })
		require.Equal(t, []string{dispatched, "cancelled", "The task was cancelled."}, d.wall.at(o))
		d.eventually(func() bool { return d.stopped.Load() > 0 }, "the target's model is stopped")
		end := d.ended(func(topics.Delegation) bool { return true })
		require.Equal(t, topics.DelegationCancelled, end.Status)
		d.release()
		d.only(o, other)
	})
}

// The prompt of a result is that of its turn only, and is not in the history.
func TestEphemeralPromptIsAbsentInTheNextTurn(t *testing.T) {
	d := newChannelWorld(t, processors.AtLeastOnce)
	d.configure("slack, prompt: Be brief.")
	d.delegation.Prompts = func(o topics.Origin) string {
		a, _ := d.live.Load().Account(o.Channel, o.Account)
		return a.Prompt
	}
	d.start()
	o := dm("slack", "ada")
	d.say(o, "delegate one")
	d.gets(o, dispatched, "result of one")
	d.say(o, "thanks")
	d.gets(o, dispatched, "result of one", "heard: thanks")
	var prompts []string
	for _, s := range d.seen() {
		prompts = append(prompts, s.EphemeralPrompt)
		for _, m := range s.Messages {
			for _, part := range []topics.Raw{m.Content, m.Metadata} {
				require.NotContains(t, part.String(), "Be brief.")
				require.NotContains(t, part.String(), delegation.CallbackPrompt)
			}
		}
	}
	require.Equal(t, []string{"Be brief.", "Be brief.", "Be brief.\n\n" + delegation.CallbackPrompt, "Be brief."}, prompts)
}
