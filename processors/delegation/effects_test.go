package delegation

import (
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/internal/machine"
	"github.com/turntable-streams/turntable/processors/internal/machine/machinetest"
	"github.com/turntable-streams/turntable/topics"
)

// letter returns the reason of the only effect, which is a dead letter.
func letter(t machinetest.TB, es effects) string { return machinetest.Reason(t, es) }

// sentTask is the message of a task.
type sentTask struct {
	machine.Effect
	Message topics.Message
}

// isTask reports whether a message is that of a task. Others announce results.
func isTask(m topics.Message) bool {
	_, ok := topics.Lookup(m.Metadata, topics.MetaTask)
	return ok
}

// tasks returns the messages of tasks.
func tasks(es effects) (list []sentTask) {
	for _, e := range es {
		if m, ok := e.Value.(topics.Message); ok && isTask(m) {
			list = append(list, sentTask{e, m})
		}
	}
	return list
}

// callbacks returns the messages that announce results.
func callbacks(es effects) []topics.Message {
	return slices.DeleteFunc(machinetest.Values[topics.Message](es), isTask)
}

// sent returns the message of the task of a delegation.
func sent(t machinetest.TB, es effects) sentTask {
	t.Helper()
	list := tasks(es)
	require.Len(t, list, 1)
	return list[0]
}

func memberOf(t machinetest.TB, metadata topics.Raw, name string) topics.Raw {
	t.Helper()
	raw, _ := topics.Lookup(metadata, name)
	return raw
}

func textOf(t machinetest.TB, object topics.Raw, name string) string {
	t.Helper()
	text := topics.TextOf(memberOf(t, object, name))
	if text == nil {
		return ""
	}
	return *text
}

// taskOf returns the task of a message.
func taskOf(t machinetest.TB, s sentTask) topics.DelegationTask {
	t.Helper()
	task, err := topics.DecodeDelegationTask(memberOf(t, s.Message.Metadata, topics.MetaTask))
	require.NoError(t, err)
	return task
}

// callback is a message that announces a result.
type callback struct {
	request, content, prompt string
	origin                   topics.Origin
	note                     topics.DelegationNote
	user                     *string
}

func callbackOf(t machinetest.TB, m topics.Message) callback {
	t.Helper()
	require.Equal(t, "user", *m.Role)
	var origin topics.Origin // none with Config.Sessions
	if raw := memberOf(t, m.Metadata, topics.MetaOrigin); raw != nil {
		var err error
		origin, err = topics.DecodeOrigin(raw)
		require.NoError(t, err)
	}
	note, err := topics.DecodeDelegationNote(memberOf(t, m.Metadata, topics.MetaResult))
	require.NoError(t, err)
	require.Nil(t, memberOf(t, m.Metadata, topics.MetaTask))
	return callback{
		request: textOf(t, m.Metadata, "request_id"), content: topics.Text(m.Content), user: m.UserID,
		prompt: textOf(t, m.Metadata, topics.MetaPrompt), origin: origin, note: note,
	}
}

// onlyCallback returns the only message that announces a result.
func onlyCallback(t machinetest.TB, es effects) callback {
	t.Helper()
	return callbackOf(t, onlyMessage(t, es))
}

func onlyMessage(t machinetest.TB, es effects) topics.Message {
	t.Helper()
	list := callbacks(es)
	require.Len(t, list, 1)
	return list[0]
}

// answerOf returns the result of the only call that was answered: its status, and its members.
func answerOf(t machinetest.TB, es effects) (status string, result topics.Raw) {
	t.Helper()
	a := machinetest.Only[topics.ToolUseResult](t, es)
	return *a.Status, a.Result
}

// requireFailed checks that a call failed.
func requireFailed(t machinetest.TB, es effects, reason string) {
	t.Helper()
	status, result := answerOf(t, es)
	require.Equal(t, "error", status)
	require.Equal(t, reason, textOf(t, result, "reason"), "%s", result)
	require.NotEmpty(t, textOf(t, result, "error"))
}

// result returns the text of a callback without its first line.
func (c callback) result() string {
	_, text, _ := strings.Cut(c.content, "\n")
	return text
}
