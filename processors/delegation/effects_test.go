package delegation

import (
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/topics"
)

type effects []effect

// valuesOf returns the values of one topic.
func valuesOf[V value](es effects) (list []V) {
	for _, e := range es {
		if m, ok := e.(emit); ok {
			if v, ok := m.Value.(V); ok {
				list = append(list, v)
			}
		}
	}
	return list
}

// onlyValue returns the only value of one topic.
func onlyValue[V value](t tb, es effects) V {
	t.Helper()
	list := valuesOf[V](es)
	require.Len(t, list, 1, "%v", es)
	return list[0]
}

// letter returns the reason of the only effect, which is a dead letter.
func letter(t tb, es effects) string {
	t.Helper()
	require.Len(t, es, 1, "%v", es)
	require.IsType(t, deadLetter{}, es[0])
	return es[0].(deadLetter).Reason
}

// sent returns the message of the task of a delegation.
func sent(t tb, es effects) taskSent {
	t.Helper()
	return onlyValue[taskSent](t, es)
}

func memberOf(t tb, metadata topics.Raw, name string) topics.Raw {
	t.Helper()
	raw, _ := topics.Lookup(metadata, name)
	return raw
}

func textOf(t tb, object topics.Raw, name string) string {
	t.Helper()
	text := topics.TextOf(memberOf(t, object, name))
	if text == nil {
		return ""
	}
	return *text
}

// taskOf returns the task of a message.
func taskOf(t tb, s taskSent) topics.DelegationTask {
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

func callbackOf(t tb, m callbackSent) callback {
	t.Helper()
	require.Equal(t, "user", *m.Role)
	origin, err := topics.DecodeOrigin(memberOf(t, m.Metadata, topics.MetaOrigin))
	require.NoError(t, err)
	note, err := topics.DecodeDelegationNote(memberOf(t, m.Metadata, topics.MetaResult))
	require.NoError(t, err)
	require.Nil(t, memberOf(t, m.Metadata, topics.MetaTask))
	return callback{
		request: textOf(t, m.Metadata, "request_id"), content: topics.Text(m.Content), user: m.UserID,
		prompt: textOf(t, m.Metadata, topics.MetaPrompt), origin: origin, note: note,
	}
}

// onlyCallback returns the only message that announces a result.
func onlyCallback(t tb, es effects) callback {
	t.Helper()
	return callbackOf(t, onlyValue[callbackSent](t, es))
}

// answerOf returns the result of the only call that was answered: its status, and its members.
func answerOf(t tb, es effects) (status string, result topics.Raw) {
	t.Helper()
	a := onlyValue[callAnswered](t, es)
	return *a.Status, a.Result
}

// requireFailed checks that a call failed.
func requireFailed(t tb, es effects, reason string) {
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
