package main

import (
	"context"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/turn/tools"
	"github.com/turntable-streams/turntable/topics"
)

func TestToolReturnsTheResultOfItsCall(t *testing.T) {
	for input, want := range map[string]string{
		`calculator {"a":6,"operator":"*","b":7}`:       `{"text":"6 \* 7 is 42","value":42}`,
		`calculator {"a":0.1,"operator":"+","b":0.2}`:   `{"text":"0.1 \+ 0.2 is 0.3",.*}`,
		`calculator {"a":2,"operator":"-","b":3.5}`:     `{"text":"2 - 3.5 is -1.5","value":-1.5}`,
		`calculator {"a":1,"operator":"/","b":8}`:       `{"text":"1 / 8 is 0.125","value":0.125}`,
		`calculator {"a":1,"operator":"/","b":0}`:       `division by zero`,
		`calculator {"a":1,"operator":"power","b":0}`:   `unknown operator "power"`,
		`calculator {"a":"one","operator":"+","b":"2"}`: `tools: input of calculator does not fit \*main.sum`,
		`clock {}`:                        `{"text":"it is \d\d:\d\d:\d\d \(UTC\)"}`,
		`clock {"zone":"Europe/Berlin"}`:  `{"text":"it is \d\d:\d\d:\d\d \(Europe/Berlin\)"}`,
		`clock {"zone":"Nowhere/At_All"}`: `unknown time zone "Nowhere/At_All"`,
		`clock {"zone":7}`:                `tools: input of clock does not fit \*main.place`,
	} {
		tool := calculator
		name, in, _ := strings.Cut(input, " ")
		if name == clock.Name {
			tool = clock
		}
		got, err := tool.Func(t.Context(), tools.Call{Name: name, Input: topics.Raw(in)})
		encoded := []byte(nil)
		if err != nil {
			encoded = []byte(err.Error())
		} else {
			encoded, err = json.Marshal(got)
			require.NoError(t, err)
		}
		require.Regexp(t, regexp.MustCompile(`^`+want+`$`), string(encoded), input)
	}
}

// written keeps the records that are published.
type written struct {
	mu      sync.Mutex
	records []processors.Outbound
}

func (w *written) Publish(_ context.Context, records ...processors.Outbound) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.records = append(w.records, records...)
	return nil
}

// delegated returns the records that calls of the tool write.
func delegated(t *testing.T, input string) (tasks, results []processors.Outbound) {
	t.Helper()
	to, err := topics.For("b")
	require.NoError(t, err)
	from, err := topics.For("a")
	require.NoError(t, err)
	var published, answered written
	w, err := tools.NewWorker("a", &answered, map[string]tools.Func{delegateTask: newDelegate(&published, to).Func},
		tools.Config{TokenSecret: callbackSecret, TokenTTL: 1 << 40})
	require.NoError(t, err)
	id, name := "call-1", delegateTask
	use, err := processors.OutboundOf(from.ToolUse, "s", topics.ToolUseItem{ToolUseID: &id, Name: &name, Input: topics.Raw(input)}, "turn/1/tool/0")
	require.NoError(t, err)
	require.NoError(t, w.Handle(t.Context(), processors.Inbound{
		Topic: use.Topic, Key: []byte("s"), Value: use.Value, Headers: []processors.Header{{Name: topics.HeaderID, Value: []byte("turn/1/tool/0")}},
	}))
	return published.records, answered.records
}

func TestDelegatedTaskNamesTheCallThatItsAnswerIsFor(t *testing.T) {
	records, results := delegated(t, `{"task":"Dig."}`)
	require.Empty(t, results, "the answer is the result")
	require.Len(t, records, 2)
	require.Equal(t, "b-reply-to", records[0].Topic)
	require.Equal(t, "b-message-input", records[1].Topic)
	for _, r := range records {
		require.Equal(t, "s--call-1", r.Key)
	}
	m, err := topics.DecodeMessage(records[1].Value)
	require.NoError(t, err)
	require.Equal(t, "Dig.", topics.Text(m.Content))
	require.Equal(t, "call-1", requestOf(m))
	require.Contains(t, string(records[0].Value), `"request_id":"call-1"`)
	require.NotEmpty(t, topics.TokenOf(records[0].Value))
	require.Empty(t, topics.TokenOf(records[1].Headers[topics.HeaderRoute]), "the message has no secret")

	for _, r := range records {
		require.NotEmpty(t, r.Headers[topics.HeaderID], "a repeat of the call is recognised")
	}
}

func TestCallWithoutATaskFails(t *testing.T) {
	records, results := delegated(t, `{"task":" "}`)
	require.Empty(t, records)
	require.Len(t, results, 1)
	require.Contains(t, string(results[0].Value), errNoTask.Error())
}
