package turn

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/turntable-streams/turntable/topics"
)

// conversationOf builds a history of messages in short form: u is the user's, a an answer, c:x an assistant's message that
// calls x, t:x the tool message with the result of x, b:x a user's message with the result of x as a block.
func conversationOf(short ...string) topics.Raw {
	list := make([]string, len(short))
	for i, m := range short {
		kind, id, _ := strings.Cut(m, ":")
		switch kind {
		case "u":
			list[i] = fmt.Sprintf(`{"role":"user","content":"question %d, [it is {"}`, i)
		case "a":
			list[i] = fmt.Sprintf(`{"role":"assistant","content":[{"type":"text","text":"answer %d"}]}`, i)
		case "c":
			list[i] = `{"role":"assistant","content":[{"type":"text","text":"let me"},{"type":"tool_use","id":"` + id + `"}]}`
		case "t":
			list[i] = `{"role":"tool","content":[{"tool_use_id":"` + id + `","name":"look","result":{}}]}`
		case "b":
			list[i] = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"` + id + `"}]}`
		}
	}
	return topics.Raw("[" + strings.Join(list, " ,\n") + "]")
}

func TestAConversationIsCutBetweenExchanges(t *testing.T) {
	all := 1 << 20
	for name, test := range map[string]struct {
		keep         room
		conversation string
		kept         int // 0: nothing is cut off
	}{
		"the last two of five":                  {room{all, 0, 2}, "u a u a u a u a u a", 4},
		"the last two of three":                 {room{all, 0, 2}, "u a u a u a", 4},
		"as many as there are":                  {room{all, 0, 3}, "u a u a u a", 0},
		"fewer than may stay":                   {room{all, 0, 3}, "u a", 0},
		"no message":                            {room{all, 0, 2}, "", 0},
		"no user's message":                     {room{0, 0, 2}, "a a a", 0},
		"by messages":                           {room{all, 5, 0}, "u a u a u a", 4},
		"the newest exchange stays":             {room{0, 1, 0}, "u a u c:1 t:1 a", 4},
		"calls stay with their results":         {room{all, 3, 0}, "u c:1 t:1 c:2 t:2 a u a", 2},
		"a result in a user's message":          {room{all, 2, 0}, "u a u c:1 b:1 a", 4},
		"the same ID in every exchange":         {room{all, 5, 0}, "u c:1 t:1 a u c:1 t:1 a", 4},
		"a result of a call in front":           {room{all, 4, 0}, "u c:1 u t:1 u a", 2},
		"a call without a result":               {room{all, 2, 0}, "u c:1 u a", 2},
		"a result without a call":               {room{all, 2, 0}, "u t:1 u a", 2},
		"a result without a call at the end":    {room{all, 2, 0}, "u a u a t:9", 0},
		"a summary in front":                    {room{all, 0, 2}, "a u a u a u a", 4},
		"a front that is all but one exchange":  {room{all, 2, 0}, "a a a u a", 2},
		"an unfinished exchange at the end":     {room{all, 2, 0}, "u a u c:1", 2},
		"an exchange that is longer than bytes": {room{10, 0, 0}, "u a u a", 2},
	} {
		t.Run(name, func(t *testing.T) {
			conversation := conversationOf(strings.Fields(test.conversation)...)
			cut := cutFront(conversation, test.keep, false)
			require.Equal(t, test.kept, cut.kept)
			if test.kept == 0 {
				require.Zero(t, cut)
				return
			}
			rest := withoutFront(conversation, cut.bytes)
			require.EqualValues(t, test.kept, messages(rest))
			var before, after []json.RawMessage
			require.NoError(t, json.Unmarshal(conversation, &before))
			require.NoError(t, json.Unmarshal(rest, &after))
			require.Equal(t, before[len(before)-len(after):], after)
			require.Contains(t, string(after[0]), `"user"`)
		})
	}
}

func TestAConversationCanBeCutOffEntirely(t *testing.T) {
	conversation := conversationOf("u", "a", "u", "a")
	cut := cutFront(conversation, room{bytes: 10}, true)
	require.Zero(t, cut.kept)
	require.Nil(t, withoutFront(conversation, cut.bytes))
	require.Equal(t, 2, cutFront(conversation, room{bytes: 1000, messages: 2}, true).kept, "only as much as needed")
}

// A cut separates no call from its result, leaves no more than may stay, and as much as may.
func TestACutSeparatesNoCallFromItsResult(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var short []string
		var starts []int // messages from the start of an exchange to the end
		for e := range rapid.IntRange(1, 8).Draw(t, "exchanges") {
			starts = append(starts, len(short))
			short = append(short, "u")
			for s := range rapid.IntRange(0, 3).Draw(t, "steps") {
				id := fmt.Sprintf("%d", rapid.IntRange(0, 3).Draw(t, "id")+4*s+100*(e%2))
				short = append(short, "c:"+id, rapid.SampledFrom([]string{"t:", "b:"}).Draw(t, "result")+id)
			}
			short = append(short, "a")
		}
		conversation := conversationOf(short...)
		keep := room{
			bytes:     rapid.IntRange(0, len(conversation)+10).Draw(t, "bytes"),
			messages:  rapid.IntRange(0, len(short)+1).Draw(t, "messages"),
			exchanges: rapid.IntRange(0, len(starts)+1).Draw(t, "kept exchanges"),
		}
		want := 0
		for i := len(starts) - 1; i >= 0; i-- {
			kept := len(short) - starts[i]
			size := len(conversation)
			if i > 0 {
				size -= len(conversationOf(short[:starts[i]]...)) - 2 + len(" ,\n")
			}
			fits := size <= keep.bytes && (keep.messages == 0 || kept <= keep.messages) &&
				(keep.exchanges == 0 || len(starts)-i <= keep.exchanges)
			if fits && i == 0 {
				want = 0
			}
			if i > 0 && (fits || want == 0) {
				want = kept
			}
			if !fits {
				break
			}
		}
		cut := cutFront(conversation, keep, false)
		require.Equal(t, want, cut.kept)
		if want > 0 {
			rest := withoutFront(conversation, cut.bytes)
			require.Equal(t, cut.size, len(rest))
			requirePaired(t, rest, nil)
		}
	})
}

// requirePaired checks what providers ask of a prompt: it begins with a user's message or a summary, every call has its
// result, and every result its call.
func requirePaired(t require.TestingT, history, input topics.Raw) {
	var all []struct {
		Role    string
		Content json.RawMessage
	}
	whole := topics.Splice(history, input)
	require.NoError(t, json.Unmarshal(whole, &all))
	if len(all) > 0 && !strings.Contains(string(all[0].Content), "[Conversation Summary]") {
		require.Equal(t, "user", all[0].Role, "%s", whole)
	}
	open := map[string]bool{}
	for _, m := range all {
		var blocks []struct {
			Type      string
			ID        string
			ToolUseID string `json:"tool_use_id"`
		}
		if json.Unmarshal(m.Content, &blocks) != nil {
			continue // a text
		}
		for _, b := range blocks {
			switch {
			case b.Type == "tool_use":
				require.False(t, open[b.ID], "%s is called twice: %s", b.ID, whole)
				open[b.ID] = true
			case b.ToolUseID != "":
				require.True(t, open[b.ToolUseID], "no call of the result %s: %s", b.ToolUseID, whole)
				delete(open, b.ToolUseID)
			}
		}
	}
	require.Empty(t, open, "calls without results: %s", whole)
}
