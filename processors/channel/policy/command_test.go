package policy_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/processors/channel/policy"
)

func TestCommands(t *testing.T) {
	for text, want := range map[string]policy.Command{
		"/agents":                       {Name: policy.Agents},
		" /Status\n":                    {Name: policy.Status},
		"/STOP now":                     {Name: policy.Stop, Rest: "now"},
		"/new\twhat now?":               {Name: policy.New, Rest: "what now?"},
		"/approve":                      {Name: policy.Approve},
		"/approve 12AB":                 {Name: policy.Approve, Code: "12ab"},
		"/approve oops it is fine":      {Name: policy.Approve, Code: "oops", Rest: "it is fine"},
		"/deny":                         {Name: policy.Deny},
		"/deny 12ab34CD":                {Name: policy.Deny, Code: "12ab34cd"},
		"/deny 12ab34cd too\nexpensive": {Name: policy.Deny, Code: "12ab34cd", Rest: "too\nexpensive"},
		"/deny too expensive":           {Name: policy.Deny, Rest: "too expensive"},
		"/deny bad idea":                {Name: policy.Deny, Rest: "bad idea"},
	} {
		got, ok := policy.ParseCommand(direct("U1", text))
		require.True(t, ok, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{
		"", "/", "/ stop", "//stop", "/stopp", "/help", "stop", "please /stop", "hello\n/stop", "[From: A] /stop", "/home/me", "\u200b/stop", "/stop@",
	} {
		_, ok := policy.ParseCommand(direct("U1", text))
		require.False(t, ok, text)
	}
}

func TestCommandWithAnAddresseeMustBeAddressedToTheAccount(t *testing.T) {
	in := group("U1", "/stop@other_bot")
	_, ok := policy.ParseCommand(in)
	require.False(t, ok)
	in.Mentioned = true
	c, ok := policy.ParseCommand(in)
	require.True(t, ok)
	require.Equal(t, policy.Command{Name: policy.Stop}, c)
}

// Nothing but the text is read, and a text that does not begin with a slash has no command.
func TestCommandsAreReadOnlyFromTheText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		command := rapid.SampledFrom([]string{"/new", "/stop", "/approve", "/deny x"}).Draw(t, "command")
		in := group(command, rapid.StringMatching(`[a-z>(\[][^/]{0,8}`).Draw(t, "before")+command)
		in.Event, in.Guild, in.Roles = command, command, []string{command}
		in.Origin.UserName, in.Origin.Recipient, in.Origin.Thread, in.Origin.MessageID = command, command, command, command
		_, ok := policy.ParseCommand(in)
		require.False(t, ok)
		in.Text, in.Decision = command, &adapter.Decision{GateID: command}
		_, ok = policy.ParseCommand(in)
		require.False(t, ok)
		in.Decision = nil
		c, ok := policy.ParseCommand(in)
		require.True(t, ok)
		require.True(t, strings.HasPrefix(command, "/"+string(c.Name)))
	})
}
