package whole

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/approval"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/topics"
)

// asksForPayments is a policy in which payments wait for a person.
func asksForPayments() *approval.Policy {
	return &approval.Policy{Default: approval.Allow, TTL: time.Hour, Rules: []approval.Rule{{Tool: "pay", Effect: approval.Ask}}}
}

// asked waits for the question of a gate at an origin and returns it, and the last text there.
func (d *channelWorld) asked(o topics.Origin) (ask *adapter.Ask, said string) {
	d.t.Helper()
	d.eventually(func() bool {
		for _, c := range d.wall.all() {
			if c.To.SamePlace(o) && c.Ask != nil {
				ask, said = c.Ask, c.Text
			}
		}
		return ask != nil
	})
	return ask, said
}

// An open gate is asked in the thread that the message came from. Another person and another place cannot decide it; the person
// decides with a command, with a button, or with a command without a code.
func TestGateIsAskedAndDecidedOnTheChannel(t *testing.T) {
	both(t, func(t *testing.T, g processors.Guarantee) {
		d := newChannelWorld(t, g)
		d.policy = asksForPayments()
		d.start()
		for name, tt := range map[string]struct {
			decide func(o topics.Origin, gate string)
			paid   int64
			said   string
		}{
			"command": {func(o topics.Origin, gate string) { d.say(o, "/approve "+gate[:8]) }, 1, "paid"},
			"button":  {func(o topics.Origin, gate string) { d.press(o, gate, true) }, 1, "paid"},
			"no code": {func(o topics.Origin, _ string) { d.say(o, "/approve") }, 1, "paid"},
			"denied":  {func(o topics.Origin, gate string) { d.say(o, "/deny "+gate[:8]+" too much") }, 0, "denied"},
			"no":      {func(o topics.Origin, gate string) { d.press(o, gate, false) }, 0, "denied"},
		} {
			before := d.paid.Load()
			o := room("slack", "harbor", "t-"+name, "ada")
			d.say(o, "pay the harbor")
			ask, said := d.asked(o)
			require.Contains(t, said, "/approve "+ask.GateID[:8], name)
			require.Equal(t, "pay", ask.Tool)

			bob := o
			bob.User, bob.UserName = "bob", "BOB"
			d.say(bob, "/approve "+ask.GateID[:8])
			d.press(bob, ask.GateID, true)
			elsewhere := room("slack", "harbor", "other-"+name, "ada")
			d.say(elsewhere, "/approve "+ask.GateID[:8])
			d.press(elsewhere, ask.GateID, true)
			d.eventually(func() bool { return len(d.wall.at(o)) == 3 && len(d.wall.at(elsewhere)) == 2 }, name)
			require.Equal(t, before, d.paid.Load(), name)

			tt.decide(o, ask.GateID)
			d.eventually(func() bool { return contains(d.wall.at(o), tt.said) }, name)
			require.Equal(t, before+tt.paid, d.paid.Load(), name)
			d.eventually(func() bool { return len(d.wall.at(o)) == 5 }, "%s: %q", name, d.wall.at(o))
		}
		for _, c := range d.wall.all() {
			require.Equal(t, "harbor", c.To.Recipient)
		}
	})
}

// press passes a pressed button to the bridge.
func (d *channelWorld) press(o topics.Origin, gate string, approve bool) {
	d.t.Helper()
	d.say(o, "", func(in *adapter.Inbound) { in.Decision = &adapter.Decision{GateID: gate, Approve: approve} })
}

func contains(texts []string, text string) bool {
	for _, s := range texts {
		if strings.TrimSpace(s) == text {
			return true
		}
	}
	return false
}
