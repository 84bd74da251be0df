package channel

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
)

// event is of the person U1, who is an admin, in the room C1 of the guild T1.
func eventWith() adapter.Inbound {
	in := inRoom("U1", "hello", mentioned)
	in.Guild, in.Roles = "T1", []string{"member", "admin"}
	return in
}

func bound(bindings ...Binding) *Settings {
	s := with(nil)
	s.Bindings = bindings
	return s
}

func TestMostSpecificBindingWins(t *testing.T) {
	byWeight := []Binding{ // ascending
		{Agent: "channel", Channel: "slack"},
		{Agent: "account", Account: "main"},
		{Agent: "both", Channel: "slack", Account: "main"},
		{Agent: "guild", Guild: "T1"},
		{Agent: "guild and roles", Guild: "T1", Roles: []string{"admin"}},
		{Agent: "room", ChannelID: "C1"},
		{Agent: "room in guild", ChannelID: "C1", Guild: "T1"},
		{Agent: "person in room", ChannelID: "C1", Peer: "U1"},
	}
	for i, most := range byWeight {
		// In the file, the most specific one is first, last, or between others.
		for at := range i + 1 {
			list := append([]Binding{}, byWeight[:at]...)
			list = append(list, most)
			list = append(list, byWeight[at:i]...)
			require.Equal(t, most.Agent, decided(bound(list...), eventWith()).Agent)
		}
	}
	for _, c := range []struct {
		b    Binding
		want int
	}{
		{Binding{Peer: "x"}, 8},
		{Binding{ChannelID: "x"}, 8},
		{Binding{Guild: "x"}, 4},
		{Binding{Roles: []string{"x", "y"}}, 2},
		{Binding{Account: "x"}, 2},
		{Binding{Channel: "x"}, 1},
		{Binding{}, 0},
	} {
		require.Equal(t, c.want, specificityOf(c.b))
	}
	require.Equal(t, "first", decided(bound(Binding{Agent: "first", Peer: "U1"}, Binding{Agent: "second", ChannelID: "C1"}),
		eventWith()).Agent)
}

func TestAllConditionsOfABindingMustMatch(t *testing.T) {
	full := Binding{
		Agent: "ops", Channel: "slack", Account: "main", Peer: "U1", Guild: "T1", ChannelID: "C1", Roles: []string{"oncall", "admin"},
	}
	require.True(t, matches(full, eventWith()))
	for name, change := range map[string]func(*adapter.Inbound){
		"channel": func(in *adapter.Inbound) { in.Origin.Channel = "other" },
		"account": func(in *adapter.Inbound) { in.Origin.Account = "other" },
		"peer":    func(in *adapter.Inbound) { in.Origin.User = "U2" },
		"guild":   func(in *adapter.Inbound) { in.Guild = "" },
		"room":    func(in *adapter.Inbound) { in.Origin.Recipient = "C2" },
		"roles":   func(in *adapter.Inbound) { in.Roles = []string{"member", "Admin"} },
		"none":    func(in *adapter.Inbound) { in.Roles = nil },
	} {
		in := eventWith()
		change(&in)
		require.False(t, matches(full, in), name)
	}
}

func TestRoutingFallsBack(t *testing.T) {
	s := bound(Binding{Agent: "ops", ChannelID: "C1"}, Binding{Agent: "guild", Guild: "T1"})
	s.DefaultAgent = "assistant"
	for _, c := range []struct{ served, want string }{
		{"ops", "ops"}, {"guild", "guild"}, {"front", "front"}, {"assistant", "assistant"}, {"", ""},
	} {
		// Only one agent is served: those before it in the order are skipped.
		account, _ := s.Account("slack", "main")
		require.Equal(t, c.want, routeOf(s, account, eventWith(), func(agent string) bool { return agent == c.served }))
	}
	out, _ := decide(s, rules{Serves: func(string) bool { return false }, MaxText: 10}, eventWith(), window{}, noon)
	require.Equal(t, NoAgent, out.Reason)
}

// The binding that is chosen matches, and none that matches is more specific.
func TestRouteIsOfAMostSpecificMatch(t *testing.T) {
	word := rapid.SampledFrom([]string{"", "a", "b"})
	binding := rapid.Custom(func(t *rapid.T) Binding {
		b := Binding{
			Channel: word.Draw(t, "channel"), Account: word.Draw(t, "account"), Peer: word.Draw(t, "peer"), Guild: word.Draw(t, "guild"),
			ChannelID: word.Draw(t, "channel_id"), Roles: rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b"}), 0, 2).Draw(t, "roles"),
		}
		b.Agent = b.Channel + "," + b.Account + "," + b.Peer + "," + b.Guild + "," + b.ChannelID
		return b
	})
	rapid.Check(t, func(t *rapid.T) {
		s := &Settings{Bindings: rapid.SliceOfN(binding, 0, 8).Draw(t, "bindings")}
		in := adapter.Inbound{Guild: word.Draw(t, "guild"), Roles: []string{word.Draw(t, "role")}}
		in.Origin.Channel, in.Origin.Account = word.Draw(t, "channel"), word.Draw(t, "account")
		in.Origin.User, in.Origin.Recipient = word.Draw(t, "user"), word.Draw(t, "recipient")
		most := 0
		for _, b := range s.Bindings {
			if matches(b, in) {
				most = max(most, specificityOf(b))
			}
		}
		got := routeOf(s, Account{Agent: "fallback"}, in, plain.Serves)
		if most == 0 {
			require.Equal(t, "fallback", got)
			return
		}
		found := false
		for _, b := range s.Bindings {
			found = found || b.Agent == got && matches(b, in) && specificityOf(b) == most
		}
		require.True(t, found, got)
	})
}
