package channel

import (
	"slices"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
)

// routeOf returns the agent that is to answer an event: that of the most specific binding that matches, the first one of several,
// else the account's, else the default one. Agents that serves rejects are skipped. It is empty if there is no agent.
func routeOf(s *Settings, a Account, in adapter.Inbound, serves func(agent string) bool) string {
	agent, most := "", 0
	for _, b := range s.Bindings {
		if specificity := specificityOf(b); specificity > most && matches(b, in) && serves(b.Agent) {
			agent, most = b.Agent, specificity
		}
	}
	for _, other := range []string{a.Agent, s.DefaultAgent} {
		if agent == "" && other != "" && serves(other) {
			agent = other
		}
	}
	return agent
}

// matches reports whether an event fulfils all conditions of a binding. Of roles, any is enough.
func matches(b Binding, in adapter.Inbound) bool {
	for _, condition := range [][2]string{
		{b.Channel, in.Origin.Channel},
		{b.Account, in.Origin.Account},
		{b.Peer, in.Origin.User},
		{b.Guild, in.Guild},
		{b.ChannelID, in.Origin.Recipient},
	} {
		if condition[0] != "" && condition[0] != condition[1] {
			return false
		}
	}
	return len(b.Roles) == 0 || slices.ContainsFunc(b.Roles, func(role string) bool { return slices.Contains(in.Roles, role) })
}

// specificityOf is the sum of the weights of a binding's conditions: 8 for a person and for a room, 4 for a guild, 2 for roles
// and for an account, and 1 for a type of platform.
func specificityOf(b Binding) int {
	sum := 0
	for _, condition := range []struct {
		given  bool
		weight int
	}{
		{b.Peer != "", 8},
		{b.ChannelID != "", 8},
		{b.Guild != "", 4},
		{len(b.Roles) > 0, 2},
		{b.Account != "", 2},
		{b.Channel != "", 1},
	} {
		if condition.given {
			sum += condition.weight
		}
	}
	return sum
}
