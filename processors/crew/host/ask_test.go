package host

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/crew/crewtest"
	"github.com/turntable-streams/turntable/topics"
)

// A person who sees nothing of a request must not be asked for it.
func TestRequestsThatCannotBeShownAreRefused(t *testing.T) {
	long := strings.Repeat("x", maxField)
	for name, step := range map[string]crewtest.Step{
		"terminal": {Terminal: []string{"bash", "-c", "git push --force #" + long}},
		"write":    {Write: &crewtest.File{Path: long, Content: "x"}},
		"read":     {Read: &crewtest.File{Path: long}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, goAgent(t, crewtest.Script{Rules: []crewtest.Rule{{Steps: []crewtest.Step{step}}}}), quickStop,
				func(_ *rig, c *Config, _ *times) { c.Policy.Read = Ask })
			run, session := r.started()
			r.prompt(run, session, "p")
			await[topics.CrewTurnEnded](r, 1)
			require.Empty(t, said[topics.CrewPermission](r))
			require.Contains(t, r.text(), errTooLarge.Message)
		})
	}
}

// The brokers may accept smaller records than the host writes.
func TestRequestsThatTheBrokersRejectForTheirSizeAreRefused(t *testing.T) {
	long := strings.Repeat("x", 20<<10)
	call, err := json.Marshal(map[string]any{"toolCallId": "t1", "title": "Run", "rawInput": map[string]string{"command": long}})
	require.NoError(t, err)
	r := newRig(t, goAgent(t, crewtest.Script{Rules: []crewtest.Rule{{Steps: []crewtest.Step{
		{Terminal: []string{"bash", "-c", long}},
		{Ask: &crewtest.Ask{ToolCall: call, Allowed: []crewtest.Step{{Text: "allowed"}}}},
	}}}}), quickStop, func(r *rig, _ *Config, _ *times) { r.out.largest = 10 << 10 })
	run, session := r.started()
	r.prompt(run, session, "p")
	await[topics.CrewTurnEnded](r, 1)
	require.Empty(t, said[topics.CrewPermission](r))
	require.Contains(t, r.text(), errTooLarge.Message)
	require.NotContains(t, r.text(), "allowed")
}

func TestLargeToolCallIsShownByItsBeginningAndMarked(t *testing.T) {
	r := newRig(t, goAgent(t, crewtest.Script{Rules: []crewtest.Rule{{Steps: []crewtest.Step{{Ask: &crewtest.Ask{
		ToolCall: rawOf(`{"toolCallId":"t1","title":"Run","_meta":{"toolName":"Bash"},"rawInput":{"command":"echo ` +
			strings.Repeat("\\\"", maxUpdate) + `"}}`),
	}}}}}}), quickStop)
	run, session := r.started()
	r.prompt(run, session, "p")
	var call struct {
		Title string `json:"title"`
		Input struct {
			Start string `json:"start"`
			Bytes int    `json:"bytes"`
		} `json:"rawInput"`
		Meta map[string]any `json:"_meta"`
	}
	require.NoError(t, json.Unmarshal(await[topics.CrewPermission](r, 1)[0].ToolCall, &call))
	require.Equal(t, "Run", call.Title)
	require.True(t, strings.HasPrefix(call.Input.Start, `{"command":"echo \"\"`), call.Input.Start[:20])
	require.Greater(t, call.Input.Bytes, maxUpdate)
	require.Equal(t, map[string]any{topics.CrewShortened: 1.0}, call.Meta)
}

func TestToolCallThatCannotBeShortenedIsLeftOut(t *testing.T) {
	large := strings.Repeat("x", maxUpdate)
	require.Nil(t, shownCall(rawOf(`"`+large+`"`)))
	require.Nil(t, shownCall(rawOf(`{"`+large+`":1}`)))
	// The text of a message is divided. A tool call must not have only a part of its text, without a mark.
	require.Contains(t, string(shownCall(rawOf(`{"content":{"type":"text","text":"`+large+`"}}`))), topics.CrewShortened)
	require.Equal(t, `{"title":"x"}`, string(shownCall(rawOf(`{"title":"x"}`))))
}
