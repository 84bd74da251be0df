package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/topics"
)

func message(role string, content any) topics.Message {
	return topics.Message{Role: &role, Content: encode(content)}
}

func raw(role, content string) topics.Message {
	return topics.Message{Role: &role, Content: topics.Raw(content)}
}

// said returns the text and the calls of a model's reply.
func said(t *testing.T, model think.Func, messages ...topics.Message) (text string, calls []string) {
	t.Helper()
	reply, err := model(t.Context(), think.Step{Messages: messages})
	require.NoError(t, err)
	again, err := model(t.Context(), think.Step{Messages: messages})
	require.NoError(t, err)
	require.Equal(t, reply, again, "a step that is repeated has the same reply")
	for _, c := range reply.Calls() {
		calls = append(calls, c.Name+" "+string(c.Input))
	}
	return reply.Blocks[0].Text, calls
}

func TestModelCallsTheToolsOfTheQuestion(t *testing.T) {
	for question, want := range map[string][]string{
		firstQuestion: {
			`calculator {"a":17.5,"operator":"*","b":4}`, `clock {}`,
			`delegate_task {"task":"Work out the area of a table of 12 by 7."}`,
		},
		"2+2 and -3 - -5?":                  {`calculator {"a":2,"operator":"+","b":2}`, `calculator {"a":-3,"operator":"-","b":-5}`},
		"What time is it in Europe/Berlin?": {`clock {"zone":"Europe/Berlin"}`},
		"the area of 1.5 x 2 plus 1 - 1":    {`calculator {"a":1,"operator":"-","b":1}`, `delegate_task {"task":"Work out the area of 1.5 x 2."}`},
		"Hello, I am 42":                    nil,
		"":                                  nil,
	} {
		_, calls := said(t, orchestrate, message("user", question))
		require.Equal(t, want, calls, question)
	}
}

func TestModelUsesTheHistory(t *testing.T) {
	before := []topics.Message{
		message("user", "2 + 3"),
		raw("assistant", `[{"type":"text","text":"Let me ask."},{"type":"tool_use","id":"a","name":"calculator","input":{}}]`),
		raw("tool", `[{"name":"calculator","result":{"text":"2 + 3 is 5","value":5},"status":"success","tool_use_id":"a"}]`),
	}
	text, _ := said(t, orchestrate, before...)
	require.Equal(t, "2 + 3 is 5.", text)

	answered := append(before, message("assistant", "2 + 3 is 5."))
	text, _ = said(t, orchestrate, append(answered, message("user", "Again?"))...)
	require.Equal(t, "2 + 3 is 5.", text)
	_, calls := said(t, orchestrate, append(answered, message("user", "Double that"))...)
	require.Equal(t, []string{`calculator {"a":2,"operator":"*","b":5}`}, calls)
	text, _ = said(t, orchestrate, append(answered, message("user", "Hello"))...)
	require.Contains(t, text, "You have asked 2 so far.")
}

func TestAnswerMentionsAFailedTool(t *testing.T) {
	text, _ := said(t, orchestrate, raw("tool", `[{"name":"calculator","result":{"error":"division by zero"},"status":"error"}]`))
	require.Equal(t, "Calculator failed (division by zero).", text)
}

func TestWorkerAnswersOnlyAboutAreas(t *testing.T) {
	task := message("user", "Work out the area of 12 by 7.")
	_, calls := said(t, work, task)
	require.Equal(t, []string{`calculator {"a":12,"operator":"*","b":7}`}, calls)
	text, _ := said(t, work, task, raw("tool", `[{"name":"calculator","result":{"value":84},"status":"success"}]`))
	require.Equal(t, "the area of 12 by 7 is 84", text)
	text, _ = said(t, work, task, raw("tool", `[{"name":"calculator","result":{"error":"broken"},"status":"error"}]`))
	require.Equal(t, "calculator failed (broken)", text)
	text, calls = said(t, work, message("user", "Sing."))
	require.Empty(t, calls)
	require.NotEmpty(t, text)
}
