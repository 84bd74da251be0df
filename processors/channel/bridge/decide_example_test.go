package bridge_test

import (
	"fmt"
	"time"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/bridge"
	"github.com/turntable-streams/turntable/processors/channel/settings"
	"github.com/turntable-streams/turntable/topics"
)

func ExampleDecide() {
	s := &settings.Settings{
		Accounts:     []settings.Account{{Channel: "slack", Name: "main", RateLimit: 1}},
		Bindings:     []settings.Binding{{Agent: "ops", ChannelID: "C7"}},
		DefaultAgent: "front",
	}
	rules := bridge.Rules{Serves: func(string) bool { return true }, MaxText: 64 << 10}
	in := adapter.Inbound{
		Event: "Ev1", Text: "/stop",
		Origin: topics.Origin{Channel: "slack", Account: "main", Recipient: "C7", User: "U1", Group: true},
	}
	now := time.UnixMilli(1_790_000_000_000)
	out, window := bridge.Decide(s, rules, in, bridge.Window{}, now)
	fmt.Println(out.Action, out.Command.Name, out.Agent)

	in.Event, in.Text, in.Mentioned = "Ev2", "Are you there?", true
	out, window = bridge.Decide(s, rules, in, window, now.Add(time.Second))
	fmt.Println(out.Action)
	out, _ = bridge.Decide(s, rules, in, window, now.Add(time.Minute))
	fmt.Println(out.Action, out.Agent)
	// Output:
	// command stop ops
	// slow
	// message ops
}
