package think_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/turn/think/internal/toolcall"
	"github.com/turntable-streams/turntable/topics"
)

func TestEveryCallOfATurnHasAnIDOfItsOwn(t *testing.T) {
	user, assistant, tool := "user", "assistant", "tool"
	messages := []topics.Message{
		{Role: &assistant, Content: topics.Raw(`[{"type":"tool_use","id":"earlier"}]`)},
		{Role: &user, Content: topics.Raw(`"?"`)},
		{Role: &assistant, Content: topics.Raw(`[{"type":"text","text":"x"},{"type":"tool_use","id":"a"}]`)},
		{Role: &tool},
	}
	take := func() (all []string) {
		ids := toolcall.New("step", messages)
		for _, id := range []string{"earlier", "a", "b", "b", "b-2", "", " ", strings.Repeat("x", 201)} {
			all = append(all, ids.Next(id))
		}
		return all
	}
	all := take()
	require.Equal(t, []string{"earlier", "a-2", "b", "b-2", "b-2-2"}, all[:5])
	require.Equal(t, all, take(), "a repeat of the step has the same IDs")
	seen := map[string]bool{}
	for _, id := range all {
		require.False(t, seen[id] || len(id) > 40, id)
		seen[id] = true
	}
}

func TestArgumentsAreAnObject(t *testing.T) {
	for text, want := range map[string]string{
		``: `{}`, " \n": `{}`, `null`: `{}`, `"null"`: `{}`, `""`: `{}`, `{"a": 1}`: `{"a": 1}`, `"{\"a\":1}"`: `{"a":1}`,
		`"\"{\\\"a\\\":1}\""`: `{"a":1}`, `{"a":1,"a":2}`: `{"a":1,"a":2}`, `{"a":"\ud83d"}`: `{"a":"\ufffd"}`,
	} {
		require.Equal(t, toolcall.Arguments{Input: topics.Raw(want)}, toolcall.Read(text), text)
	}
	for text, why := range map[string]string{
		`[1]`: "array", `7`: "number", `true`: "boolean", `"x"`: "syntax error", `{}""`: "syntax error after 2 bytes",
		`{"a":1}}`: "syntax error", `{'a':1}`: "syntax error", `{"a":1,}`: "syntax error", `{"secret`: "end before", `{"a":`: "end before",
		strings.Repeat(`{"a":`, 501) + "1" + strings.Repeat("}", 501): "deeply",
	} {
		a := toolcall.Read(text)
		require.Contains(t, a.Problem, why, text)
		require.Equal(t, why == "end before", a.Cut, text)
		require.Equal(t, "{}", string(a.Input))
		require.NotContains(t, a.Problem, "secret")
	}
}

func TestHalfCharactersAreJoinedOrReplaced(t *testing.T) {
	for _, pieces := range [][]string{
		{`"a\ud83d`, `\ude42b"`}, {`"a\ud83d"`, `"\ude42b"`}, {`"a\uD83D\uDE42b"`}, {"\"a\xf0\x9f\"", "\"\x99\x82b\""}, {"\"a🙂b\""},
	} {
		if len(pieces) > 1 && !strings.HasSuffix(pieces[0], `"`) {
			pieces = []string{pieces[0] + pieces[1]}
		}
		var j toolcall.Joiner
		text := ""
		for _, p := range pieces {
			part := j.Add(topics.Raw(p))
			require.True(t, utf8.ValidString(part))
			text += part
		}
		require.Equal(t, "a🙂b", text+j.End(), pieces)
	}
	var j toolcall.Joiner
	require.Equal(t, "a", j.Add(topics.Raw(`"a\ud83d"`)))
	require.Equal(t, "\uFFFDb", j.Add(topics.Raw(`"b"`)))
	require.Equal(t, "\uFFFD", j.Add(topics.Raw(`"\ude42"`)))
	require.Equal(t, `\ud83d`, j.Add(topics.Raw(`"\\ud83d"`)), "an escaped backslash")
	require.Empty(t, j.Add(topics.Raw(`7`))+j.Add(nil)+j.Add(topics.Raw(`null`)))
	require.Equal(t, "", j.Add(topics.Raw(`"\udbff"`)))
	require.Equal(t, "\uFFFD", j.End())
	require.Empty(t, j.End())
	for text, want := range map[string]string{
		`{"\ud83d":"\ude42\ud83d","b":"\ud83d\ude42"}`: `{"\ufffd":"\ufffd\ufffd","b":"\ud83d\ude42"}`,
		`"\\ud83d"`: `"\\ud83d"`, `"\ud83d\ud83d\ude42"`: `"\ufffd\ud83d\ude42"`, "\"\xed\xa0\xbd\"": "\"\uFFFD\"", `"\ud83`: `"\ud83`,
	} {
		require.Equal(t, want, string(toolcall.WellFormed(topics.Raw(text))), text)
	}
}
