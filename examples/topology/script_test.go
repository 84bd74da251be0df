package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestModelCallsTheToolsOfTheQuestion(t *testing.T) {
	for question, want := range map[string][]string{
		firstQuestion: {
			`calculator {"expression":"(17.5 + 4) * 2"}`, `clock {}`,
			`delegate_task {"task":"Work out the area of a table of 12 by 7."}`,
		},
		"2+2 and -3 * (4 - 5)?":             {`calculator {"expression":"2+2"}`, `calculator {"expression":"-3 * (4 - 5)"}`},
		"What time is it in Europe/Berlin?": {`clock {"zone":"Europe/Berlin"}`},
		"Double that.":                      {`calculator {"expression":"2 * 43"}`},
		"the area of 1.5 x 2 plus 1 - 1":    {`delegate_task {"task":"Work out the area of 1.5 x 2."}`, `calculator {"expression":"1 - 1"}`},
		"Hello, I am 42":                    nil,
		"":                                  nil,
	} {
		var got []string
		for _, c := range asked(question, "43") {
			got = append(got, c.name+" "+string(c.input))
		}
		require.Equal(t, want, got, question)
	}
}

func TestModelUsesTheHistory(t *testing.T) {
	user := func(s string) message { return message{Role: "user", Content: text(s)} }
	before := []message{
		user("2 + 3"),
		{Role: "assistant", Content: encode([]block{{Type: "tool_use", ID: "a", Name: calculator, Input: []byte(`{"expression":"2 + 3"}`)}})},
		{Role: "tool", Content: encode([]outcome{{ToolUseID: "a", Name: calculator, Result: []byte(`{"value":5}`), Status: statusSuccess}})},
	}
	require.Equal(t, "2 + 3 is 5.", orchestrate(conversation{messages: before}).text)

	answered := append(before, message{Role: "assistant", Content: text("2 + 3 is 5.")})
	require.Equal(t, "2 + 3 is 5.", orchestrate(conversation{messages: append(answered, user("Again?"))}).text)
	require.Equal(t, `{"expression":"2 * 5"}`, string(orchestrate(conversation{messages: append(answered, user("Double that"))}).calls[0].input))
	require.Contains(t, orchestrate(conversation{messages: append(answered, user("Hello"))}).text, "You have asked 2 so far.")
}

func TestAnswerMentionsAFailedTool(t *testing.T) {
	tool := message{Role: "tool", Content: encode([]outcome{
		{Name: calculator, Result: encode(failure{Error: "division by zero"}), Status: statusError},
	})}
	require.Equal(t, "Calculator failed (division by zero).", orchestrate(conversation{messages: []message{tool}}).text)
}

func TestWorkerAnswersOnlyAboutAreas(t *testing.T) {
	said := work(conversation{messages: []message{{Role: "user", Content: text("Work out the area of 12 by 7.")}}})
	require.Equal(t, `{"expression":"12 * 7"}`, string(said.calls[0].input))
	said = work(conversation{messages: []message{{Role: "user", Content: text("Sing.")}}})
	require.Empty(t, said.calls)
	require.NotEmpty(t, said.text)
}

func TestPrintedTextIsOneLine(t *testing.T) {
	require.Equal(t, "a b[0m", oneLine("a\nb\x1b[0m"))
}
