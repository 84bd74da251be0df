package provider

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "github.com/turntable-streams/turntable/internal/testing/rapidseed"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/topics"
)

// of reads a conversation for a provider that accepts simple names and IDs.
func of(messages []topics.Message) ([]Message, error) {
	rules := Rules{Name: AnyName, ID: AnyName}
	all, _, err := (&Client{rules: rules, names: namesOf(rules, nil), lately: newLately()}).Conversation(think.Step{Messages: messages})
	return all, err
}

func message(role, content string) topics.Message {
	m := topics.Message{Content: topics.Raw(content)}
	if content == "" {
		m.Content = nil
	}
	if role != "" {
		m.Role = &role
	}
	return m
}

func TestMessagesOfOneRoleAreJoined(t *testing.T) {
	all, err := of([]topics.Message{
		message("user", `"a"`), message("", `["b",null,7]`), message("system", `7`), message("assistant", `{"c":1}`),
	})
	require.NoError(t, err)
	require.Equal(t, []Message{
		{Blocks: []Block{{Kind: Text, Text: "a"}, {Kind: Text, Text: "b"}, {Kind: Text, Text: "7"}}},
		{Assistant: true, Blocks: []Block{{Kind: Text, Text: `{"c":1}`}}},
	}, all)
}

func TestBlankContentIsLeftOut(t *testing.T) {
	all, err := of([]topics.Message{
		{},
		message("user", `" "`), message("assistant", `[]`), message("user", `[{"type":"text","text":" "}]`),
		message("user", `"a"`),
	})
	require.NoError(t, err)
	require.Equal(t, []Message{{Blocks: []Block{{Kind: Text, Text: "a"}}}}, all)
}

func TestConversationThatCannotBeReadIsAnError(t *testing.T) {
	for _, messages := range [][]topics.Message{
		nil, {message("user", `""`)}, {message("tool", `[7]`)}, {message("tool", `["x"]`)},
	} {
		_, err := of(messages)
		require.ErrorIs(t, err, think.ErrConversation)
	}
}

func TestBlocksOfAnthropicsFormatAreRead(t *testing.T) {
	const result = `{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"N4"}],"is_error":true}`
	const document = `{"type":"document","source":{}}`
	all, err := of([]topics.Message{
		message("user", `[{"type":"image","source":{"type":"url","url":"u","media_type":5}},`+document+`,{"type":"image"},{}]`),
		message("assistant", `[{"type":"tool_use","id":"t","name":"n","input":[1]},{"type":"thinking","thinking":"hm"}]`),
		message("user", `[`+result+`]`),
		message("assistant", `[{"type":"tool_use","id":"u","name":"n"}]`),
		message("tool", `[{"type":"tool_result","tool_use_id":"u","content":"N5"}]`),
	})
	require.NoError(t, err)
	require.Equal(t, []Kind{Image, Other, Other, Other}, kindsOf(all[0]))
	require.Equal(t, "u", all[0].Blocks[0].URL)
	require.Equal(t, "[document omitted: the model cannot read it]", all[0].Blocks[1].Omitted())
	require.Equal(t, "[content omitted: the model cannot read it]", all[0].Blocks[3].Omitted())
	require.Equal(t, "{}", string(all[1].Blocks[0].Input))
	require.Equal(t, Other, all[1].Blocks[1].Kind)
	require.Equal(t, []Block{{Kind: Result, Raw: topics.Raw(result), ID: "t", Name: "n", Text: "N4", Failed: true}}, all[2].Blocks)
	require.Equal(t, "N5", all[4].Blocks[0].Text)
}

func kindsOf(m Message) (kinds []Kind) {
	for _, b := range m.Blocks {
		kinds = append(kinds, b.Kind)
	}
	return kinds
}

func TestCallWithoutAResultGetsAnError(t *testing.T) {
	const calls = `[{"type":"tool_use","id":"a","name":"n"},{"type":"tool_use","id":"b","name":"m"}]`
	unanswered := []Block{
		{Kind: Result, ID: "a", Name: "n", Text: missing, Failed: true},
		{Kind: Result, ID: "b", Name: "m", Text: missing, Failed: true},
	}
	all, err := of([]topics.Message{message("assistant", calls)})
	require.NoError(t, err)
	require.Equal(t, unanswered, all[1].Blocks, "at the end")
	all, err = of([]topics.Message{message("assistant", calls), message("user", `"go on"`)})
	require.NoError(t, err)
	require.Equal(t, append(unanswered, Block{Kind: Text, Text: "go on"}), all[1].Blocks, "before a text")
	all, err = of([]topics.Message{
		message("assistant", calls), message("user", `"wait"`), message("assistant", `"ok"`),
		message("tool", `[{"tool_use_id":"a","name":"n","result":null,"status":"success"}]`),
	})
	require.NoError(t, err)
	require.Equal(t, append(unanswered, Block{Kind: Text, Text: "wait"}), all[1].Blocks, "with a late result")
	require.Equal(t, []Block{{Kind: Text, Text: "Result of an earlier call of a tool: {}"}}, all[3].Blocks)
}

func TestEveryCallHasOneResultInTheNextMessage(t *testing.T) {
	ids := rapid.SampledFrom([]string{"a", "b", "c"})
	block := rapid.Custom(func(t *rapid.T) string {
		switch id := ids.Draw(t, "id"); rapid.IntRange(0, 2).Draw(t, "kind") {
		case 0:
			return `{"type":"tool_use","id":"` + id + `","name":"n","input":{}}`
		case 1:
			return `{"type":"tool_result","tool_use_id":"` + id + `","content":"r"}`
		default:
			return `{"type":"text","text":"x"}`
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		var messages []topics.Message
		for range rapid.IntRange(1, 8).Draw(t, "messages") {
			content := "["
			for i, b := range rapid.SliceOfN(block, 1, 5).Draw(t, "blocks") {
				if i > 0 {
					content += ","
				}
				content += b
			}
			messages = append(messages, message(rapid.SampledFrom([]string{"user", "assistant"}).Draw(t, "role"), content+"]"))
		}
		all, err := of(messages)
		if err != nil {
			require.ErrorIs(t, err, think.ErrConversation)
			require.Empty(t, all)
			return // only results of the assistant and calls of the user, which are left out
		}
		var calls []string
		for i, m := range all {
			require.NotEmpty(t, m.Blocks)
			require.True(t, i == 0 || m.Assistant != all[i-1].Assistant, "roles alternate")
			var results, next []string
			for at, b := range m.Blocks {
				switch b.Kind {
				case Call:
					require.True(t, m.Assistant)
					next = append(next, b.ID)
				case Result:
					require.False(t, m.Assistant)
					require.Equal(t, len(results), at, "results come first")
					results = append(results, b.ID)
				}
			}
			require.Equal(t, calls, results)
			calls = next
		}
		require.Empty(t, calls, "the last call has a result")
	})
}
