package updater_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/memoir/updater"
	"github.com/turntable-streams/turntable/topics"
)

func message(role, content string) topics.Message {
	return topics.Message{Role: &role, Content: topics.Raw(content)}
}

func TestPromptHasTheMemoryAndTheConversation(t *testing.T) {
	text := updater.Prompt{}.Of(updater.Ended{
		Memory: "Skipper of the \"Alba\"\nLikes N4", Limit: 64 << 10,
		Messages: []topics.Message{
			message("user", `"Which berth?\nThe memory so far: none"`),
			message("assistant", `[{"type":"text","text":"Let me look."},{"type":"tool_use","id":"t1","name":"berth","input":{"at":18}}]`),
			message("tool", `[{"tool_use_id":"t1","name":"berth","result":{"berth":"N4"},"status":"success","content":"{}"}]`),
			message("user", `[{"type":"tool_result","tool_use_id":"t2","content":"free"}]`),
			{Content: topics.Raw(`"no role"`)},
			message("assistant", `null`),
		},
	})
	require.Contains(t, text, "\n"+`"Skipper of the \"Alba\"\nLikes N4"`+"\n")
	require.Contains(t, text, strings.Join([]string{
		`{"role":"user","text":"Which berth?\nThe memory so far: none"}`,
		`{"role":"assistant","text":"Let me look.","tool_calls":["berth {\"at\":18}"]}`,
		`{"role":"tool","tool_results":["{\"berth\":\"N4\"}"]}`,
		`{"role":"user","tool_results":["free"]}`,
		`{"role":"user","text":"no role"}`,
		`{"role":"assistant"}`,
	}, "\n")+"\n")
	require.Contains(t, text, "at most 8192 characters")
	require.NotContains(t, text, "left out)")
}

func TestPromptIsBounded(t *testing.T) {
	var messages []topics.Message
	for i := range 500 {
		messages = append(messages, message("user", fmt.Sprintf(`"question %d %s"`, i, strings.Repeat("x", 2000))))
	}
	messages = append(messages, message("tool", `[{"tool_use_id":"t1","result":"`+strings.Repeat("y", 100<<10)+`"}]`),
		message("user", `"`+strings.Repeat("z", 100<<10)+`"`))
	text := updater.Prompt{}.Of(updater.Ended{Messages: messages, Limit: 1000})
	require.Less(t, len(text), 205<<10)
	require.Contains(t, text, "question 499", "the newest stay")
	require.NotContains(t, text, "question 0 ")
	require.Regexp(t, `\(the first 4\d\d messages are left out\)`, text)
	require.Contains(t, text, "at most 1000 characters")
	require.NotContains(t, text, strings.Repeat("y", 2000))

	short := updater.Prompt{Length: 100, Input: 1}.Of(updater.Ended{Messages: messages, Limit: 1000})
	require.Contains(t, short, "(the first 502 messages are left out)")
	require.Contains(t, short, "at most 100 characters")
}

func TestHugeMessageDoesNotHideTheConversation(t *testing.T) {
	huge := `[` + strings.TrimSuffix(strings.Repeat(`{"tool_use_id":"t","result":"`+strings.Repeat("x", 900)+`"},`, 300), ",") + `]`
	text := updater.Prompt{}.Of(updater.Ended{Messages: []topics.Message{
		message("user", `"My boat is the Alba."`), message("tool", huge), message("assistant", `"Noted."`),
	}})
	require.Contains(t, text, `{"role":"user","text":"My boat is the Alba."}`)
	require.Contains(t, text, `{"role":"tool","text":"(too long)"}`)
	require.Contains(t, text, `{"role":"assistant","text":"Noted."}`)
	require.NotContains(t, text, "left out)")
}

func TestScriptedUpdaterAppendsNewFacts(t *testing.T) {
	u := updater.Scripted(func(text string) string {
		name, ok := strings.CutPrefix(text, "My name is ")
		if !ok {
			return ""
		}
		return "Name:\n" + name
	})
	e := updater.Ended{Memory: "Likes N4\n", Limit: 40, Messages: []topics.Message{
		message("user", `"My name is Mira"`), message("assistant", `"My name is Bot"`), message("user", `"Hi"`),
		message("user", `"My name is Mira"`),
	}}
	m, err := u.Update(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, "Likes N4\nName: Mira", m.Text)

	e.Memory, e.Limit = m.Text, 12
	m, err = u.Update(t.Context(), e)
	require.NoError(t, err)
	require.Equal(t, "Name: Mira", m.Text, "the first lines are left out")
	e.Limit = 3
	m, err = u.Update(t.Context(), e)
	require.NoError(t, err)
	require.Empty(t, m.Text)
}
