package providertest

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/topics"
)

// Sent is a request as a provider reads it: the names and the IDs of its calls, and the IDs of its results, in their order.
type Sent struct{ Tools, Names, Calls, Results []string }

// Made are names and IDs that another provider accepts, or that a model made up.
var (
	madeNames = []string{
		"browser.tabs.open", `view_file" path="a`, "exec<|channel|>json", strings.Repeat("n", 65), "", "7up", "größe", "clock", "a_b", "a.b", "a b",
	}
	madeIDs = []string{
		"functions.search:0", "call_abc|fc_def", "chatcmpl-tool-1.2", strings.Repeat("i", 86), "", "", "again", "again", "äöü", "a b", `\ud83d`,
	}
)

// History is a conversation whose calls have these names and IDs, also in two parallel calls, and text with halves of characters.
func History() think.Step {
	quoted := func(text string) string {
		if strings.HasPrefix(text, `\u`) {
			return `"` + text + `"`
		}
		b := topics.EncodeMessage(topics.Message{Role: &text})
		role, _ := topics.Lookup(b, "role")
		return string(role)
	}
	messages := []topics.Message{Message("user", `"half \ud83d of a pair"`)}
	for i, id := range madeIDs {
		name := quoted(madeNames[i])
		call := `{"type":"tool_use","id":` + quoted(id) + `,"name":` + name + `,"input":{"n":1,"half":"\ud83d","\ude42":1}}`
		result := `{"tool_use_id":` + quoted(id) + `,"name":` + name + `,"result":{"at":"\ude42 %"},"status":"success"}`
		messages = append(messages, Message("assistant", "["+call+","+strings.Replace(call, `"n":1`, `"n":2`, 1)+"]"),
			Message("tool", "["+strings.Replace(result, "%", "first", 1)+","+strings.Replace(result, "%", "second", 1)+"]"))
	}
	return Step(append(messages, Message("user", `[{"type":"text","text":"And \ude42 now?"}]`))...)
}

// RequireAccepted fails the test unless a provider accepts the names and IDs of History in every request that contains it, all
// calls and their results are in it, and it is the same each time.
func (p Provider) RequireAccepted(t *testing.T, settings think.Settings, name, id *regexp.Regexp, read func(body topics.Raw) Sent) {
	t.Helper()
	a := Start(t, p.Text("N4."))
	settings.Tools = []think.Tool{Tool(), {Name: "a.b", InputSchema: topics.Raw(`{"type":"object","description":"\ud83d"}`)}, {Name: "a_b", InputSchema: topics.Raw(`{"type":"object"}`)}}
	for range 2 {
		_, err := p.NewModel(t, a, settings).Think(t.Context(), History())
		require.NoError(t, err)
	}
	require.Equal(t, a.Requests()[0].Body, a.Requests()[1].Body)
	body := a.Requests()[0].Body
	require.NotRegexp(t, `\\ud[89a-f]`, strings.ToLower(body), "halves of characters, also in texts that are JSON")
	for _, said := range []string{"first", "second"} {
		require.Equal(t, len(madeIDs), strings.Count(body, said))
	}
	sent := read(topics.Raw(body))
	require.Len(t, sent.Calls, 2*len(madeIDs))
	require.Equal(t, sent.Calls, sent.Results)
	names, ids := map[string]string{}, map[string]bool{}
	for i, got := range sent.Names {
		made := madeNames[i/2]
		require.Regexp(t, name, got, made)
		require.True(t, names[got] == "" || names[got] == made+"!", "two names are sent as one: %s", got)
		names[got] = made + "!"
		require.Regexp(t, id, sent.Calls[i])
		require.False(t, ids[sent.Calls[i]], "the ID of two calls")
		ids[sent.Calls[i]] = true
	}
	require.Equal(t, "a.b!", names[sent.Tools[1]], "a tool has one name")
	require.Equal(t, "a_b", sent.Tools[2])
	for _, got := range sent.Tools {
		require.Regexp(t, name, got)
	}
}
