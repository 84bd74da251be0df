package bridge_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/bridge"
	"github.com/turntable-streams/turntable/processors/channel/settings"
)

// everyAgent is served.
var rules = bridge.Rules{Serves: func(string) bool { return true }, MaxText: 100}

// with returns settings with one account, slack/main, of the agent front.
func with(change func(*settings.Account)) *settings.Settings {
	a := settings.Account{Channel: "slack", Name: "main", Agent: "front"}
	if change != nil {
		change(&a)
	}
	return &settings.Settings{Accounts: []settings.Account{a}}
}

// inRoom is a message of a person in the room C1.
func inRoom(user, text string, change ...func(*adapter.Inbound)) adapter.Inbound {
	in := direct(user, text)
	in.Origin.Recipient, in.Origin.Group = "C1", true
	for _, c := range change {
		c(&in)
	}
	return in
}

func mentioned(in *adapter.Inbound) { in.Mentioned = true }

func pressed(in *adapter.Inbound) {
	in.Text, in.Decision = "", &adapter.Decision{GateID: "g1", Approve: true}
}

func decide(s *settings.Settings, in adapter.Inbound) bridge.Outcome {
	out, _ := bridge.Decide(s, rules, in, bridge.Window{}, noon)
	return out
}

func TestDirectMessagesAreNotDroppedByMentionOnly(t *testing.T) {
	for _, p := range []settings.GroupPolicy{
		"", settings.GroupMentionOnly, settings.GroupCommandsOnly, settings.GroupIgnore, settings.GroupAll,
	} {
		out := decide(with(func(a *settings.Account) { a.Group = p }), direct("U1", "hello"))
		require.Equal(t, bridge.Ask, out.Action, p)
		require.Equal(t, "front", out.Agent)
	}
}

func TestGroupPolicy(t *testing.T) {
	text, named, command, button := inRoom("U1", "hello"), inRoom("U1", "hello", mentioned), inRoom("U1", "/status"), inRoom("U1", "", pressed)
	for _, c := range []struct {
		policy settings.GroupPolicy
		in     adapter.Inbound
		action bridge.Action
		reason bridge.Reason
	}{
		{settings.GroupAll, text, bridge.Ask, ""},
		{settings.GroupAll, command, bridge.Run, ""},
		{"", text, bridge.Refuse, bridge.GroupNoMention},
		{settings.GroupMentionOnly, text, bridge.Refuse, bridge.GroupNoMention},
		{settings.GroupMentionOnly, named, bridge.Ask, ""},
		{settings.GroupMentionOnly, command, bridge.Run, ""},
		{settings.GroupMentionOnly, button, bridge.Press, ""},
		{settings.GroupMentionOnly, inRoom("U1", "/unknown"), bridge.Refuse, bridge.GroupNoMention},
		{settings.GroupCommandsOnly, named, bridge.Refuse, bridge.GroupNoCommand},
		{settings.GroupCommandsOnly, command, bridge.Run, ""},
		{settings.GroupCommandsOnly, button, bridge.Press, ""},
		{settings.GroupIgnore, named, bridge.Refuse, bridge.GroupIgnored},
		{settings.GroupIgnore, command, bridge.Refuse, bridge.GroupIgnored},
		{settings.GroupIgnore, button, bridge.Refuse, bridge.GroupIgnored},
		{"perhaps", named, bridge.Refuse, bridge.GroupIgnored},
	} {
		out := decide(with(func(a *settings.Account) { a.Group = c.policy }), c.in)
		require.Equal(t, c.action, out.Action, c)
		require.Equal(t, c.reason, out.Reason, c)
	}
}

func TestDMPolicy(t *testing.T) {
	allowed := func(p settings.DMPolicy) *settings.Settings {
		return with(func(a *settings.Account) { a.DM, a.Allowed = p, []string{"U1", ""} })
	}
	nobody := direct("", "hello")
	for _, c := range []struct {
		policy settings.DMPolicy
		in     adapter.Inbound
		reason bridge.Reason
	}{
		{"", direct("U2", "hello"), ""},
		{settings.DMRespond, direct("U2", "hello"), ""},
		{settings.DMAllowedOnly, direct("U1", "hello"), ""},
		{settings.DMAllowedOnly, direct("U2", "hello"), bridge.DMNotAllowed},
		{settings.DMAllowedOnly, direct("U2", "/status"), bridge.DMNotAllowed},
		{settings.DMAllowedOnly, direct("u1", "hello"), bridge.DMNotAllowed},
		{settings.DMAllowedOnly, nobody, bridge.DMNotAllowed},
		{settings.DMIgnore, direct("U1", "hello"), bridge.DMIgnored},
		{settings.DMIgnore, direct("U1", "/status"), bridge.DMIgnored},
		{"perhaps", direct("U1", "hello"), bridge.DMIgnored},
	} {
		out := decide(allowed(c.policy), c.in)
		require.Equal(t, c.reason, out.Reason, c)
	}
	require.Equal(t, bridge.Ask, decide(allowed(settings.DMAllowedOnly), inRoom("U2", "hello", mentioned)).Action,
		"the people of groups are not those of direct messages")
}

func TestAccountThatIsNotInTheSettingsIsRefused(t *testing.T) {
	in := direct("U1", "hello")
	in.Origin.Account = "other"
	out := decide(with(nil), in)
	require.Equal(t, bridge.Refuse, out.Action)
	require.Equal(t, bridge.NoAccount, out.Reason)
}

func TestOnlyMessagesOfRoomsStartThreads(t *testing.T) {
	threaded := with(func(a *settings.Account) { a.Group, a.Threading = settings.GroupAll, true })
	in := inRoom("U1", "hello")
	require.Equal(t, "m1", decide(threaded, in).Origin.Thread)
	require.Empty(t, decide(with(func(a *settings.Account) { a.Group = settings.GroupAll }), in).Origin.Thread)

	inThread := inRoom("U1", "hello", func(in *adapter.Inbound) { in.Origin.Thread = "m0" })
	require.Equal(t, "m0", decide(threaded, inThread).Origin.Thread)
	require.Empty(t, decide(threaded, direct("U1", "hello")).Origin.Thread, "a direct message")
	require.Empty(t, decide(threaded, inRoom("U1", "", pressed)).Origin.Thread, "a button is pressed where the question is")

	answer := inRoom("U2", "and?", func(in *adapter.Inbound) { in.Origin.Thread, in.Origin.MessageID = "m1", "m2" })
	require.Equal(t, decide(threaded, in).Origin.Session("front"), decide(threaded, answer).Origin.Session("front"),
		"who answers in the thread continues the conversation")
}

func TestChecksHaveTheirOrder(t *testing.T) {
	strict := with(func(a *settings.Account) {
		a.RateLimit, a.Agent = 1, ""
	})
	long := strings.Repeat("a", 101)
	var w bridge.Window
	steps := []struct {
		in     adapter.Inbound
		action bridge.Action
		reason bridge.Reason
	}{
		{inRoom("U1", long), bridge.Refuse, bridge.GroupNoMention}, // before the limit, which it does not count for
		{direct("U1", ""), bridge.Refuse, bridge.Empty},            // before routing
		{direct("U1", "/status"), bridge.Refuse, bridge.NoAgent},   // the limit is reached, but there is nobody to say so
	}
	for i, step := range steps {
		step.in.Event = string(rune('a' + i))
		var out bridge.Outcome
		out, w = bridge.Decide(strict, rules, step.in, w, noon)
		require.Equal(t, step.action, out.Action, i)
		require.Equal(t, step.reason, out.Reason, i)
	}
	require.Equal(t, bridge.TooLong, decide(with(nil), direct("U1", long)).Action)
	require.Equal(t, bridge.TooLong, decide(with(nil), direct("U1", "/deny "+long)).Action)
	require.Equal(t, bridge.Ask, decide(with(nil), direct("U1", long[1:])).Action)

	limited := with(func(a *settings.Account) { a.RateLimit = 1 })
	first, next := direct("U1", "hello"), direct("U1", "/stop")
	next.Event = "another"
	_, w = bridge.Decide(limited, rules, first, bridge.Window{}, noon)
	out, _ := bridge.Decide(limited, rules, next, w, noon)
	require.Equal(t, bridge.Slow, out.Action, "commands are limited too")
	require.Equal(t, "front", out.Agent)
}

func TestApproversAreThoseOfTheAccount(t *testing.T) {
	s := with(func(a *settings.Account) { a.Approvers = []string{"U1", ""} })
	require.True(t, decide(s, direct("U1", "/approve abc")).Approver)
	require.False(t, decide(s, direct("U2", "/approve abc")).Approver)
	require.False(t, decide(s, direct("", "/approve abc")).Approver)
}
