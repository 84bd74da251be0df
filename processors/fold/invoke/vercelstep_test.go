package invoke

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/topics"
)

// partsOf are the parts of a Vercel stream, with the ID of the text or the call.
func partsOf(t *testing.T, body string) (list []string) {
	t.Helper()
	for _, frame := range eventFrames(body) {
		if frame == "[DONE]" {
			continue
		}
		kind := textAt(t, frame, "type")
		if id := textAt(t, frame, "toolCallId") + textAt(t, frame, "id"); id != "" {
			kind += " " + id
		}
		if input := at(t, frame, "input"); input != nil {
			kind += " " + compacted(input)
		}
		list = append(list, kind)
	}
	return list
}

// vercelBody is a request whose last message is the assistant's, with the answer to a call.
func vercelBody(id, call, token string, approved bool) string {
	if id != "" {
		id = `"id":"` + id + `",`
	}
	return body("s-1", `{`+id+`"role":"assistant","parts":[{"type":"tool-pay","toolCallId":"`+call+`","state":"approval-responded",`+
		`"input":{"eur":1000000},"approval":{"id":"`+token+`","approved":`+string(boolean(approved))+`,"reason":"because"}}]}`)
}

var vercelStream = []string{"Accept", forms[2], HeaderFormat, "vercel"}

func TestVercelClientContinuesItsMessage(t *testing.T) {
	t.Parallel()
	g := newGates(t, (*broker).write)
	g.plays("s-1", "t", true, lines(paying), lines(paidEnd))
	s := g.site()
	paused := s.invoke(body("s-1", ""), append(vercelStream, HeaderLastEvent, "t.1.0")...)
	require.Equal(t, []string{
		"start", "start-step", "text-start text-1", "text-delta text-1", "text-end text-1", "tool-input-start t1",
		`tool-input-available t1 {"eur":1,"to":"x"}`, `tool-input-available t1 {"eur":1,"to":"x"}`, "tool-approval-request t1",
		"finish-step", "finish",
	}, partsOf(t, paused.body))
	rest := s.invoke(vercelBody("m-1", "t1", "r1", true), vercelStream...)
	require.Contains(t, rest.body, `{"type": "start", "messageId": "m-1"`)
	require.NotContains(t, rest.body, "finishReason", "that of the pause is over")
	require.Equal(t, []string{
		"start", "tool-output-available t1", "start-step", "text-start text-2", "text-delta text-2", "text-end text-2", "finish-step", "finish",
	}, partsOf(t, rest.body))
	d := g.written()[0]
	require.Equal(t, topics.ArgsSHA256(topics.Raw(`{"eur":1,"to":"x"}`)), d.ArgsSHA256, "not the client's")
	require.Equal(t, "because", d.Reason)

	whole := s.invoke(body("s-1", ""), append(vercelStream, HeaderLastEvent, "t.1.0")...)
	require.Equal(t, []string{
		"start", "start-step", "text-start text-1", "text-delta text-1", "text-end text-1", "tool-input-start t1",
		`tool-input-available t1 {"eur":1,"to":"x"}`, `tool-input-available t1 {"eur":1,"to":"x"}`, "tool-approval-request t1",
		"tool-output-available t1", "finish-step", "start-step", "text-start text-2", "text-delta text-2", "text-end text-2", "finish-step", "finish",
	}, partsOf(t, whole.body))
}

func TestVercelDenialIsStreamed(t *testing.T) {
	t.Parallel()
	g := newGates(t, (*broker).write)
	g.plays("s-1", "t", true, lines(paying), []string{`{"type":"done","data":{}}`})
	rest := g.site().invoke(vercelBody("m-1", "t1", "r1", false), vercelStream...)
	require.Equal(t, []string{"start", "tool-output-denied t1", "start-step", "finish-step", "finish"}, partsOf(t, rest.body))
}

// A client that does not continue its message has none with the calls: it gets them before their results.
func TestOtherMessageGetsTheCallsAgain(t *testing.T) {
	t.Parallel()
	g := newGates(t, (*broker).write)
	g.plays("s-1", "t", true, lines(paying), lines(paidEnd))
	rest := g.site().invoke(vercelBody("", "t1", "r1", true), vercelStream...)
	require.Equal(t, []string{
		"start", "start-step", "tool-input-start t1", `tool-input-available t1 {"eur":1,"to":"x"}`, "tool-output-available t1",
		"text-start text-2", "text-delta text-2", "text-end text-2", "finish-step", "finish",
	}, partsOf(t, rest.body))
}

// The reader of the ai package would take a repeated input in a new step for another call.
func TestVercelStreamAfterAPause(t *testing.T) {
	t.Parallel()
	g := newGates(t, (*broker).write)
	s := g.site()
	call := `{"type":"tool_call","data":{"id":"t1","name":"pay","input":{"eur":1,"to":"x"}}}` + "\n"
	changed := strings.Replace(call, `"eur":1`, `"eur":2`, 1)
	again := `{"type":"interaction_request","data":{"id":"r2","kind":"user_approval","payload":{"toolCallId":"t1","toolCall":{"rawInput":{"eur":1,"to":"x"}}}}}` + "\n"
	for name, c := range map[string]struct {
		before, after string
		want          []string
	}{
		"call is announced again": {"", call, []string{"start-step", "finish-step"}},
		"call has other arguments, as long as it has no result": {
			"", strings.Replace(call, "t1", "t9", 1) + changed,
			[]string{"start-step", "tool-input-start t9", `tool-input-available t9 {"eur":1,"to":"x"}`, "finish-step"},
		},
		"call is asked again": {
			"", again + `{"type":"done","data":{"stopReason":"paused"}}`,
			[]string{"start-step", "tool-input-start t1", `tool-input-available t1 {"eur":1,"to":"x"}`, "tool-approval-request t1", "finish-step"},
		},
		"block was open": {
			`{"type":"message_start","data":{"id":"m"}}` + "\n" + `{"type":"message_delta","data":{"id":"m","delta":"a"}}` + "\n",
			`{"type":"message_delta","data":{"id":"m","delta":"b"}}` + "\n" + `{"type":"message_end","data":{"id":"m"}}`,
			[]string{"start-step", "text-start m", "text-delta m", "text-end m", "finish-step"},
		},
		"block was open and only ends": {
			`{"type":"message_start","data":{"id":"m"}}` + "\n", `{"type":"message_end","data":{"id":"m"}}`, []string{"start-step", "finish-step"},
		},
	} {
		session := "s-" + strings.NewReplacer(" ", "-", ",", "").Replace(name)
		g.plays(session, name, true, lines(c.before+paying), lines(c.after))
		rest := s.invoke(strings.Replace(vercelBody("m-1", "t1", "r1", true), `"s-1"`, `"`+session+`"`, 1), vercelStream...)
		require.Equal(t, http.StatusOK, rest.status)
		want := append([]string{"start", "tool-output-available t1"}, append(c.want, "finish")...)
		require.Equal(t, want, partsOf(t, rest.body), name)
	}
}

// An agent may announce the call with other arguments before it runs: the client's part then shows them.
func TestChangedArgumentsUpdateTheCall(t *testing.T) {
	p := newProjection()
	for _, e := range scripted(t, paying).events {
		p.event(e)
	}
	p.another(true)
	for _, e := range scripted(t, `{"type":"tool_call","data":{"id":"t1","name":"pay","input":{"eur":2}}}`).events {
		parts := p.event(e)
		require.Len(t, parts, 1)
		require.Equal(t, `{"type":"tool-input-available","toolCallId":"t1","toolName":"pay","input":{"eur":2}}`, string(parts[0]))
	}
}
