package channel

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/processors/channel/adapter"
)

func TestCommands(t *testing.T) {
	for text, want := range map[string]instruction{
		"/agents":                       {Name: commandAgents},
		" /Status\n":                    {Name: commandStatus},
		"/STOP now":                     {Name: commandStop, Rest: "now"},
		"/new\twhat now?":               {Name: commandNew, Rest: "what now?"},
		"/approve":                      {Name: commandApprove},
		"/approve 12AB":                 {Name: commandApprove, Code: "12ab"},
		"/approve oops it is fine":      {Name: commandApprove, Code: "oops", Rest: "it is fine"},
		"/deny":                         {Name: commandDeny},
		"/deny 12ab34CD":                {Name: commandDeny, Code: "12ab34cd"},
		"/deny 12ab34cd too\nexpensive": {Name: commandDeny, Code: "12ab34cd", Rest: "too\nexpensive"},
		"/deny too expensive":           {Name: commandDeny, Rest: "too expensive"},
		"/deny bad idea":                {Name: commandDeny, Rest: "bad idea"},
	} {
		got, ok := parseCommand(direct("U1", text))
		require.True(t, ok, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{
		"", "/", "/ stop", "//stop", "/stopp", "/help", "stop", "please /stop", "hello\n/stop", "[From: A] /stop", "/home/me", "\u200b/stop", "/stop@",
	} {
		_, ok := parseCommand(direct("U1", text))
		require.False(t, ok, text)
	}
}

func TestCommandWithAnAddresseeMustBeAddressedToTheAccount(t *testing.T) {
	in := inRoom("U1", "/stop@other_bot")
	_, ok := parseCommand(in)
	require.False(t, ok)
	in.Mentioned = true
	c, ok := parseCommand(in)
	require.True(t, ok)
	require.Equal(t, instruction{Name: commandStop}, c)
}

// Nothing but the text is read, and a text that does not begin with a slash has no command.
func TestCommandsAreReadOnlyFromTheText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		command := rapid.SampledFrom([]string{"/new", "/stop", "/approve", "/deny x"}).Draw(t, "command")
		in := inRoom(command, rapid.StringMatching(`[a-z>(\[][^/]{0,8}`).Draw(t, "before")+command)
		in.Event, in.Guild, in.Roles = command, command, []string{command}
		in.Origin.UserName, in.Origin.Recipient, in.Origin.Thread, in.Origin.MessageID = command, command, command, command
		_, ok := parseCommand(in)
		require.False(t, ok)
		in.Text, in.Decision = command, &adapter.Decision{GateID: command}
		_, ok = parseCommand(in)
		require.False(t, ok)
		in.Decision, in.Foreign = nil, true
		_, ok = parseCommand(in)
		require.False(t, ok, "another one wrote the text")
		in.Foreign = false
		c, ok := parseCommand(in)
		require.True(t, ok)
		require.True(t, strings.HasPrefix(command, "/"+string(c.Name)))
	})
}
