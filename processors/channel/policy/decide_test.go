package policy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/policy"
	"github.com/turntable-streams/turntable/processors/channel/settings"
	"github.com/turntable-streams/turntable/topics"
)

var noon = time.UnixMilli(1_790_000_000_120)

// everyAgent is served.
var rules = policy.Rules{Serves: func(string) bool { return true }, MaxText: 100}

// with returns settings with one account, slack/main, of the agent front.
func with(change func(*settings.Account)) *settings.Settings {
	a := settings.Account{Channel: "slack", Name: "main", Agent: "front"}
	if change != nil {
		change(&a)
	}
	return &settings.Settings{Accounts: []settings.Account{a}}
}

// direct is a direct message of a person.
func direct(user, text string) adapter.Inbound {
	return adapter.Inbound{
		Event: "e-" + user, Text: text,
		Origin: topics.Origin{Channel: "slack", Account: "main", Recipient: "D-" + user, MessageID: "m1", User: user},
	}
}

// group is a message of a person in the room C1.
func group(user, text string, change ...func(*adapter.Inbound)) adapter.Inbound {
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

func decide(s *settings.Settings, in adapter.Inbound) policy.Outcome {
	out, _ := policy.Decide(s, rules, in, policy.Window{}, noon)
	return out
}

func TestDirectMessagesAreNotDroppedByMentionOnly(t *testing.T) {
	for _, p := range []settings.GroupPolicy{
		"", settings.GroupMentionOnly, settings.GroupCommandsOnly, settings.GroupIgnore, settings.GroupAll,
	} {
		out := decide(with(func(a *settings.Account) { a.Group = p }), direct("U1", "hello"))
		require.Equal(t, policy.Ask, out.Action, p)
		require.Equal(t, "front", out.Agent)
	}
}

func TestGroupPolicy(t *testing.T) {
	text, named, command, button := group("U1", "hello"), group("U1", "hello", mentioned), group("U1", "/status"), group("U1", "", pressed)
	for _, c := range []struct {
		policy settings.GroupPolicy
		in     adapter.Inbound
		action policy.Action
		reason policy.Reason
	}{
		{settings.GroupAll, text, policy.Ask, ""},
		{settings.GroupAll, command, policy.Run, ""},
		{"", text, policy.Refuse, policy.GroupNoMention},
		{settings.GroupMentionOnly, text, policy.Refuse, policy.GroupNoMention},
		{settings.GroupMentionOnly, named, policy.Ask, ""},
		{settings.GroupMentionOnly, command, policy.Run, ""},
		{settings.GroupMentionOnly, button, policy.Press, ""},
		{settings.GroupMentionOnly, group("U1", "/unknown"), policy.Refuse, policy.GroupNoMention},
		{settings.GroupCommandsOnly, named, policy.Refuse, policy.GroupNoCommand},
		{settings.GroupCommandsOnly, command, policy.Run, ""},
		{settings.GroupCommandsOnly, button, policy.Press, ""},
		{settings.GroupIgnore, named, policy.Refuse, policy.GroupIgnored},
		{settings.GroupIgnore, command, policy.Refuse, policy.GroupIgnored},
		{settings.GroupIgnore, button, policy.Refuse, policy.GroupIgnored},
		{"perhaps", named, policy.Refuse, policy.GroupIgnored},
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
		reason policy.Reason
	}{
		{"", direct("U2", "hello"), ""},
		{settings.DMRespond, direct("U2", "hello"), ""},
		{settings.DMAllowedOnly, direct("U1", "hello"), ""},
		{settings.DMAllowedOnly, direct("U2", "hello"), policy.DMNotAllowed},
		{settings.DMAllowedOnly, direct("U2", "/status"), policy.DMNotAllowed},
		{settings.DMAllowedOnly, direct("u1", "hello"), policy.DMNotAllowed},
		{settings.DMAllowedOnly, nobody, policy.DMNotAllowed},
		{settings.DMIgnore, direct("U1", "hello"), policy.DMIgnored},
		{settings.DMIgnore, direct("U1", "/status"), policy.DMIgnored},
		{"perhaps", direct("U1", "hello"), policy.DMIgnored},
	} {
		out := decide(allowed(c.policy), c.in)
		require.Equal(t, c.reason, out.Reason, c)
	}
	require.Equal(t, policy.Ask, decide(allowed(settings.DMAllowedOnly), group("U2", "hello", mentioned)).Action,
		"the people of groups are not those of direct messages")
}

func TestAccountThatIsNotInTheSettingsIsRefused(t *testing.T) {
	in := direct("U1", "hello")
	in.Origin.Account = "other"
	out := decide(with(nil), in)
	require.Equal(t, policy.Refuse, out.Action)
	require.Equal(t, policy.NoAccount, out.Reason)
}

func TestThreadingStartsAThread(t *testing.T) {
	threaded := with(func(a *settings.Account) { a.Group, a.Threading = settings.GroupAll, true })
	in := group("U1", "hello")
	require.Equal(t, "m1", decide(threaded, in).Origin.Thread)
	require.Empty(t, decide(with(func(a *settings.Account) { a.Group = settings.GroupAll }), in).Origin.Thread)

	inThread := group("U1", "hello", func(in *adapter.Inbound) { in.Origin.Thread = "m0" })
	require.Equal(t, "m0", decide(threaded, inThread).Origin.Thread)
	require.Empty(t, decide(threaded, direct("U1", "hello")).Origin.Thread, "a direct message")
	require.Empty(t, decide(threaded, group("U1", "", pressed)).Origin.Thread, "a button is pressed where the question is")

	answer := group("U2", "and?", func(in *adapter.Inbound) { in.Origin.Thread, in.Origin.MessageID = "m1", "m2" })
	require.Equal(t, decide(threaded, in).Origin.Session("front"), decide(threaded, answer).Origin.Session("front"),
		"who answers in the thread continues the conversation")
}

func TestChecksHaveTheirOrder(t *testing.T) {
	strict := with(func(a *settings.Account) {
		a.RateLimit, a.Agent = 1, ""
	})
	long := strings.Repeat("a", 101)
	var w policy.Window
	steps := []struct {
		in     adapter.Inbound
		action policy.Action
		reason policy.Reason
	}{
		{group("U1", long), policy.Refuse, policy.GroupNoMention}, // before the limit, which it does not count for
		{direct("U1", ""), policy.Refuse, policy.Empty},           // before routing
		{direct("U1", "/status"), policy.Refuse, policy.NoAgent},  // the limit is reached, but there is nobody to say so
	}
	for i, step := range steps {
		step.in.Event = string(rune('a' + i))
		var out policy.Outcome
		out, w = policy.Decide(strict, rules, step.in, w, noon)
		require.Equal(t, step.action, out.Action, i)
		require.Equal(t, step.reason, out.Reason, i)
	}
	require.Equal(t, policy.TooLong, decide(with(nil), direct("U1", long)).Action)
	require.Equal(t, policy.TooLong, decide(with(nil), direct("U1", "/deny "+long)).Action)
	require.Equal(t, policy.Ask, decide(with(nil), direct("U1", long[1:])).Action)

	limited := with(func(a *settings.Account) { a.RateLimit = 1 })
	first, next := direct("U1", "hello"), direct("U1", "/stop")
	next.Event = "another"
	_, w = policy.Decide(limited, rules, first, policy.Window{}, noon)
	out, _ := policy.Decide(limited, rules, next, w, noon)
	require.Equal(t, policy.Slow, out.Action, "commands are limited too")
	require.Equal(t, "front", out.Agent)
}

func TestApproversAreThoseOfTheAccount(t *testing.T) {
	s := with(func(a *settings.Account) { a.Approvers = []string{"U1", ""} })
	require.True(t, decide(s, direct("U1", "/approve abc")).Approver)
	require.False(t, decide(s, direct("U2", "/approve abc")).Approver)
	require.False(t, decide(s, direct("", "/approve abc")).Approver)
}
