package openai_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/think/internal/providertest"
	"github.com/turntable-streams/turntable/topics"
)

func tools(names ...string) (s think.Settings) {
	for _, name := range names {
		s.Tools = append(s.Tools, think.Tool{Name: name, InputSchema: topics.Raw(`{"type":"object"}`)})
	}
	return s
}

func piece(index, id, name, arguments string) string {
	members := ""
	if index != "" {
		members += `"index":` + index + ","
	}
	if id != "-" {
		members += `"id":` + strconv.Quote(id) + ","
	}
	function := ""
	if name != "" {
		function = `"name":` + strconv.Quote(name)
	}
	if arguments != "" {
		if function != "" {
			function += ","
		}
		function += `"arguments":` + arguments
	}
	return `{"tool_calls":[{` + members + `"type":"function","function":{` + function + `}}]}`
}

func TestPiecesOfCallsAreJoinedAsServersSendThem(t *testing.T) {
	for name, c := range map[string]struct {
		tools  []string
		pieces []string
		want   []string // name and input
	}{
		"name in every piece": {nil, []string{
			piece("0", "c", "look", `""`), piece("0", "c", "look", `"{\"a\":"`), piece("0", "c", "look", `"1}"`),
		}, []string{"look", `{"a":1}`}},
		"name in every piece, without an ID": {nil, []string{
			piece("0", "c", "look", `""`), piece("0", "-", "look", `"{\"a\":"`), piece("0", "", "look", `"1}"`),
		}, []string{"look", `{"a":1}`}},
		"name in pieces": {nil, []string{
			piece("0", "c", "look_", `""`), piece("0", "-", "up", `""`), piece("0", "-", "", `"{}"`),
		}, []string{"look_up", `{}`}},
		"name in pieces that are equal":  {[]string{"gogo"}, []string{piece("0", "c", "go", ""), piece("0", "-", "go", `"{}"`)}, []string{"gogo", `{}`}},
		"name in pieces with one ID":     {[]string{"aab"}, []string{piece("0", "c", "a", ""), piece("0", "c", "ab", `"{}"`)}, []string{"aab", `{}`}},
		"name that grows":                {nil, []string{piece("0", "c", "look_", ""), piece("0", "c", "look_up", `"{}"`)}, []string{"look_up", `{}`}},
		"an ID of its own in each piece": {nil, []string{piece("0", "c", "look", `"{\"a\":"`), piece("0", "d", "", `"1"`), piece("0", "e", "look", `"}"`)}, []string{"look", `{"a":1}`}},
		"no index": {nil, []string{
			piece("", "c", "look", `"{\"a\":"`), piece("", "-", "", `"1}"`), piece("", "d", "clock", `"{}"`),
		}, []string{"look", `{"a":1}`, "clock", `{}`}},
		"index and no ID": {nil, []string{
			piece("0", "-", "look", `"{\"a\""`), piece("0", "-", "", `":1}"`), piece("1", "-", "clock", `"{}"`),
		}, []string{"look", `{"a":1}`, "clock", `{}`}},
		"one index for all": {nil, []string{
			piece("0", "a", "look", `""`), piece("0", "", "", `"{\"n\":1}"`), piece("0", "b", "look", `""`), piece("0", "", "", `"{\"n\":2}"`),
		}, []string{"look", `{"n":1}`, "look", `{"n":2}`}},
		"one index, no ID, whole": {nil, []string{
			piece("0", "-", "look", `"{\"n\":1}"`), piece("0", "-", "look", `"{\"n\":2}"`), piece("0", "-", "clock", `"{}"`),
		}, []string{"look", `{"n":1}`, "look", `{"n":2}`, "clock", `{}`}},
		"one index, no ID, no arguments": {[]string{"look", "clock"}, []string{piece("0", "-", "look", ""), piece("0", "-", "clock", "")}, []string{"look", `{}`, "clock", `{}`}},
		"one index and one ID, whole": {nil, []string{
			piece("0", "c", "look", `"{\"n\":1}"`), piece("0", "c", "look", `"{\"n\":2}"`),
		}, []string{"look", `{"n":1}`, "look", `{"n":2}`}},
		"the whole call repeated":   {nil, []string{piece("0", "c", "look", `"{\"n\":1}"`), piece("0", "c", "look", `"{\"n\":1}"`)}, []string{"look", `{"n":1}`}},
		"empty arguments first":     {nil, []string{piece("0", "c", "look", `"{}"`), piece("0", "-", "", `"{\"n\""`), piece("0", "-", "", `":1}"`)}, []string{"look", `{"n":1}`}},
		"arguments are an object":   {nil, []string{piece("0", "c", "look", `{"n":1}`)}, []string{"look", `{"n":1}`}},
		"arguments are null":        {nil, []string{piece("0", "c", "look", `null`)}, []string{"look", `{}`}},
		"arguments are blank":       {nil, []string{piece("0", "c", "look", `" "`)}, []string{"look", `{}`}},
		"arguments are a null text": {nil, []string{piece("0", "c", "look", `"null"`)}, []string{"look", `{}`}},
		"arguments encoded twice":   {nil, []string{piece("0", "c", "look", `"\"{\\\"n\\\":1}\""`)}, []string{"look", `{"n":1}`}},
		"half of a pair":            {nil, []string{piece("0", "c", "look", `"{\"a\":\"\ud83d"`), piece("0", "-", "", `"\ude42 \ud83d\"}"`)}, []string{"look", "{\"a\":\"🙂 \uFFFD\"}"}},
		"the older form":            {nil, []string{`{"function_call":{"name":"look","arguments":"{\"n\""}}`, `{"function_call":{"arguments":":1}"}}`}, []string{"look", `{"n":1}`}},
	} {
		t.Run(name, func(t *testing.T) {
			reply, err := ask(t, tools(c.tools...), providertest.Question(), providertest.Start(t, said("tool_calls", "", c.pieces...)))
			require.NoError(t, err)
			var got []string
			ids := map[string]bool{}
			for _, call := range reply.Calls() {
				require.Empty(t, call.Invalid)
				got = append(got, call.Name, string(call.Input))
				ids[call.ID] = true
			}
			require.Equal(t, c.want, got)
			require.Len(t, ids, len(c.want)/2, "every call has an ID of its own")
		})
	}
}

func TestWhatIsGoodOfAReplyStays(t *testing.T) {
	bad := func(arguments string) string { return piece("1", "c2", "tide", arguments) }
	for name, arguments := range map[string]string{
		"more than an object": `"{}\"\""`, "no JSON": `"at noon"`, "cut off": `"{\"at"`, "array": `"[1]"`, "number": `7`, "text": `"\"x\""`,
	} {
		t.Run(name, func(t *testing.T) {
			reply, err := ask(t, think.Settings{}, providertest.Question(), providertest.Start(t,
				said("tool_calls", "Let me look.", piece("0", "c1", "clock", `"{\"n\":1}"`), bad(arguments))))
			require.NoError(t, err)
			require.Equal(t, "Let me look.", reply.Blocks[0].Text)
			calls := reply.Calls()
			require.Len(t, calls, 2)
			require.Equal(t, think.Call{ID: "c1", Name: "clock", Input: topics.Raw(`{"n":1}`)}, calls[0])
			require.Equal(t, "{}", string(calls[1].Input))
			require.Contains(t, calls[1].Invalid, "not a JSON object")
		})
	}
	reply, err := ask(t, think.Settings{}, providertest.Question(), providertest.Start(t, said("tool_calls", "", bad(`"at noon"`))))
	require.NoError(t, err, "the model can repeat the call")
	require.NotEmpty(t, reply.Calls()[0].Invalid)
	for _, reason := range []string{"length", "tool_calls", "stop"} {
		_, err = ask(t, think.Settings{}, providertest.Question(), providertest.Start(t, said(reason, "", bad(`"{\"at"`))))
		require.Error(t, err, "nothing but the beginning of a call")
	}
}

func TestParallelCallsWithOneIDAreTwoCalls(t *testing.T) {
	a := providertest.Start(t, said("tool_calls", "", piece("0", "c", "clock", `"{\"n\":1}"`), piece("1", "c", "clock", `"{\"n\":2}"`)))
	reply, err := ask(t, think.Settings{}, providertest.Question(), a)
	require.NoError(t, err)
	require.Equal(t, []string{"c", "c-2"}, []string{reply.Calls()[0].ID, reply.Calls()[1].ID})
	again, err := ask(t, think.Settings{}, providertest.Question(), a)
	require.NoError(t, err)
	require.Equal(t, reply.Calls(), again.Calls())
}

func read(body topics.Raw) (s providertest.Sent) {
	get := func(v topics.Raw, names ...string) topics.Raw {
		for _, name := range names {
			v, _ = topics.Lookup(v, name)
		}
		return v
	}
	all, _ := topics.Elements(get(body, "tools"))
	for _, tool := range all {
		s.Tools = append(s.Tools, topics.Text(get(tool, "function", "name")))
	}
	all, _ = topics.Elements(get(body, "messages"))
	for _, m := range all {
		calls, _ := topics.Elements(get(m, "tool_calls"))
		for _, c := range calls {
			s.Names = append(s.Names, topics.Text(get(c, "function", "name")))
			s.Calls = append(s.Calls, topics.Text(get(c, "id")))
		}
		if topics.Text(get(m, "role")) == "tool" {
			s.Results = append(s.Results, topics.Text(get(m, "tool_call_id")))
		}
	}
	return s
}

func TestCallWithAMappedNameIsThatOfTheTool(t *testing.T) {
	a := providertest.Start(t, said("stop", "N4."))
	_, err := ask(t, tools("a.b", "a_b"), providertest.History(), a)
	require.NoError(t, err)
	sent := read(topics.Raw(a.Requests()[0].Body))
	for i, want := range []string{"a.b", "a_b"} {
		reply, err := ask(t, tools("a.b", "a_b"), providertest.Question(), providertest.Start(t, said("tool_calls", "", piece("0", "c", sent.Tools[i], `"{}"`))))
		require.NoError(t, err)
		require.Equal(t, want, reply.Calls()[0].Name)
	}
	reply, err := ask(t, think.Settings{}, providertest.History(), providertest.Start(t, said("tool_calls", "", piece("0", "c", sent.Names[0], `"{}"`))))
	require.NoError(t, err)
	require.Equal(t, "browser.tabs.open", reply.Calls()[0].Name, "a name of the history")
}

func TestReasoningIsSentBackToTheServerThatSentIt(t *testing.T) {
	a := providertest.Start(t, said("tool_calls", "",
		`{"reasoning_content":"look it \ud83d"}`, `{"reasoning_content":"\ude42 up"}`, `{"reasoning":"hm"}`,
		`{"reasoning_details":[{"type":"reasoning.encrypted","data":"c2ln","index":0}]}`,
		`{"tool_calls":[{"id":"c1","type":"function","function":{"name":"clock","arguments":"{\"at\":"},"extra_content":{"google":{"thought_signature":"c2ln"}}}]}`,
		`{"tool_calls":[{"function":{"arguments":"\"Oslo\"}"}}]}`,
		`{"tool_calls":[{"id":"c2","type":"function","function":{"name":"tide","arguments":"{}"}}]}`), said("stop", "N4."))
	m := provider.NewModel(t, a, think.Settings{})
	next := providertest.NextStep(t, m, providertest.Question())
	_, err := m.Think(t.Context(), next)
	require.NoError(t, err)
	messages, _ := topics.Lookup(topics.Raw(a.Requests()[1].Body), "messages")
	all, _ := topics.Elements(messages)
	require.JSONEq(t, `{"role":"assistant","reasoning_content":"look it 🙂 up","reasoning":"hm",
		"reasoning_details":[{"type":"reasoning.encrypted","data":"c2ln","index":0}],"tool_calls":[
			{"id":"c1","type":"function","function":{"name":"clock","arguments":"{\"at\":\"Oslo\"}"},"extra_content":{"google":{"thought_signature":"c2ln"}}},
			{"id":"c2","type":"function","function":{"name":"tide","arguments":"{}"}}]}`, string(all[1]))
	for _, other := range []string{"other", "some-model"} {
		b := providertest.Start(t, said("stop", "N4."))
		if other == "some-model" { // another server
			b.URL = strings.Replace(b.URL, "127.0.0.1", "localhost", 1)
		}
		_, err = provider.NewModel(t, b, think.Settings{Model: other}).Think(t.Context(), next)
		require.NoError(t, err)
		for _, member := range []string{"reasoning", "extra_content", "c2ln"} {
			require.NotContains(t, b.Requests()[0].Body, member)
		}
	}
}

func TestReasoningIsSentBackInTheOpenTurnWithoutMetadata(t *testing.T) {
	a := providertest.Start(t, said("tool_calls", "", `{"reasoning_content":"look it up"}`, piece("0", "c1", "clock", `"{}"`)), said("stop", "N4."))
	m := provider.NewModel(t, a, think.Settings{})
	_, err := m.Think(t.Context(), providertest.Question())
	require.NoError(t, err)
	next := providertest.Step(providertest.Message("user", `"Which berth?"`),
		providertest.Message("assistant", `[{"type":"tool_use","id":"c1","name":"clock","input":{}}]`),
		providertest.Message("tool", `[{"tool_use_id":"c1","name":"clock","result":{},"status":"success"}]`))
	other, later := next, next
	other.SessionID = "other"
	later.Messages = append(later.Messages[:3:3], providertest.Message("assistant", `"N4."`), providertest.Message("user", `"And now?"`))
	for i, s := range []think.Step{next, other, later} {
		_, err = m.Think(t.Context(), s)
		require.NoError(t, err)
		require.Equal(t, i == 0, strings.Contains(a.Requests()[i+1].Body, `"reasoning_content":"look it up"`))
	}
}
