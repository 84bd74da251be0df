package channel

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
)

// everyAgent is served.
var plain = rules{Serves: func(string) bool { return true }, MaxText: 100}

// with returns settings with one account, slack/main, of the agent front.
func with(change func(*Account)) *Settings {
	a := Account{Channel: "slack", Name: "main", Agent: "front"}
	if change != nil {
		change(&a)
	}
	return &Settings{Accounts: []Account{a}}
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

func decided(s *Settings, in adapter.Inbound) outcome {
	out, _ := decide(s, plain, in, window{}, noon)
	return out
}

func TestDirectMessagesAreNotDroppedByMentionOnly(t *testing.T) {
	for _, p := range []GroupPolicy{
		"", GroupMentionOnly, GroupCommandsOnly, GroupIgnore, GroupAll,
	} {
		out := decided(with(func(a *Account) { a.Group = p }), direct("U1", "hello"))
		require.Equal(t, Ask, out.Action, p)
		require.Equal(t, "front", out.Agent)
	}
}

func TestGroupPolicy(t *testing.T) {
	text, named, command, button := inRoom("U1", "hello"), inRoom("U1", "hello", mentioned), inRoom("U1", "/status"), inRoom("U1", "", pressed)
	for _, c := range []struct {
		policy GroupPolicy
		in     adapter.Inbound
		action Action
		reason Reason
	}{
		{GroupAll, text, Ask, ""},
		{GroupAll, command, Run, ""},
		{"", text, Refuse, GroupNoMention},
		{GroupMentionOnly, text, Refuse, GroupNoMention},
		{GroupMentionOnly, named, Ask, ""},
		{GroupMentionOnly, command, Run, ""},
		{GroupMentionOnly, button, Press, ""},
		{GroupMentionOnly, inRoom("U1", "/unknown"), Refuse, GroupNoMention},
		{GroupCommandsOnly, named, Refuse, GroupNoCommand},
		{GroupCommandsOnly, command, Run, ""},
		{GroupCommandsOnly, button, Press, ""},
		{GroupIgnore, named, Refuse, GroupIgnored},
		{GroupIgnore, command, Refuse, GroupIgnored},
		{GroupIgnore, button, Refuse, GroupIgnored},
		{"perhaps", named, Refuse, GroupIgnored},
	} {
		out := decided(with(func(a *Account) { a.Group = c.policy }), c.in)
		require.Equal(t, c.action, out.Action, c)
		require.Equal(t, c.reason, out.Reason, c)
	}
}

func TestDMPolicy(t *testing.T) {
	allowed := func(p DMPolicy) *Settings {
		return with(func(a *Account) { a.DM, a.Allowed = p, []string{"U1", ""} })
	}
	nobody := direct("", "hello")
	for _, c := range []struct {
		policy DMPolicy
		in     adapter.Inbound
		reason Reason
	}{
		{"", direct("U2", "hello"), ""},
		{DMRespond, direct("U2", "hello"), ""},
		{DMAllowedOnly, direct("U1", "hello"), ""},
		{DMAllowedOnly, direct("U2", "hello"), DMNotAllowed},
		{DMAllowedOnly, direct("U2", "/status"), DMNotAllowed},
		{DMAllowedOnly, direct("u1", "hello"), DMNotAllowed},
		{DMAllowedOnly, nobody, DMNotAllowed},
		{DMIgnore, direct("U1", "hello"), DMIgnored},
		{DMIgnore, direct("U1", "/status"), DMIgnored},
		{"perhaps", direct("U1", "hello"), DMIgnored},
	} {
		out := decided(allowed(c.policy), c.in)
		require.Equal(t, c.reason, out.Reason, c)
	}
	require.Equal(t, Ask, decided(allowed(DMAllowedOnly), inRoom("U2", "hello", mentioned)).Action,
		"the people of groups are not those of direct messages")
}

func TestAccountThatIsNotInTheSettingsIsRefused(t *testing.T) {
	in := direct("U1", "hello")
	in.Origin.Account = "other"
	out := decided(with(nil), in)
	require.Equal(t, Refuse, out.Action)
	require.Equal(t, NoAccount, out.Reason)
}

func TestOnlyMessagesOfRoomsStartThreads(t *testing.T) {
	threaded := with(func(a *Account) { a.Group, a.Threading = GroupAll, true })
	in := inRoom("U1", "hello")
	require.Equal(t, "m1", decided(threaded, in).Origin.Thread)
	require.Empty(t, decided(with(func(a *Account) { a.Group = GroupAll }), in).Origin.Thread)

	inThread := inRoom("U1", "hello", func(in *adapter.Inbound) { in.Origin.Thread = "m0" })
	require.Equal(t, "m0", decided(threaded, inThread).Origin.Thread)
	require.Empty(t, decided(threaded, direct("U1", "hello")).Origin.Thread, "a direct message")
	require.Empty(t, decided(threaded, inRoom("U1", "", pressed)).Origin.Thread, "a button is pressed where the question is")

	answer := inRoom("U2", "and?", func(in *adapter.Inbound) { in.Origin.Thread, in.Origin.MessageID = "m1", "m2" })
	require.Equal(t, decided(threaded, in).Origin.Session("front"), decided(threaded, answer).Origin.Session("front"),
		"who answers in the thread continues the conversation")
}

func TestChecksHaveTheirOrder(t *testing.T) {
	strict := with(func(a *Account) {
		a.RateLimit, a.Agent = 1, ""
	})
	long := strings.Repeat("a", 101)
	var w window
	steps := []struct {
		in     adapter.Inbound
		action Action
		reason Reason
	}{
		{inRoom("U1", long), Refuse, GroupNoMention}, // before the limit, which it does not count for
		{direct("U1", ""), Refuse, Empty},            // before routing
		{direct("U1", "/status"), Refuse, NoAgent},   // the limit is reached, but there is nobody to say so
	}
	for i, step := range steps {
		step.in.Event = string(rune('a' + i))
		var out outcome
		out, w = decide(strict, plain, step.in, w, noon)
		require.Equal(t, step.action, out.Action, i)
		require.Equal(t, step.reason, out.Reason, i)
	}
	require.Equal(t, TooLong, decided(with(nil), direct("U1", long)).Action)
	require.Equal(t, TooLong, decided(with(nil), direct("U1", "/deny "+long)).Action)
	require.Equal(t, Ask, decided(with(nil), direct("U1", long[1:])).Action)

	limited := with(func(a *Account) { a.RateLimit = 1 })
	first, next := direct("U1", "hello"), direct("U1", "/stop")
	next.Event = "another"
	_, w = decide(limited, plain, first, window{}, noon)
	out, _ := decide(limited, plain, next, w, noon)
	require.Equal(t, Slow, out.Action, "commands are limited too")
	require.Equal(t, "front", out.Agent)
}

func TestApproversAreThoseOfTheAccount(t *testing.T) {
	s := with(func(a *Account) { a.Approvers = []string{"U1", ""} })
	require.True(t, decided(s, direct("U1", "/approve abc")).Approver)
	require.False(t, decided(s, direct("U2", "/approve abc")).Approver)
	require.False(t, decided(s, direct("", "/approve abc")).Approver)
}
