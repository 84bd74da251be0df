package host

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/crewtest"
)

// A person who sees nothing of a request must not be asked for it.
func TestRequestsThatCannotBeShownAreRefused(t *testing.T) {
	long := strings.Repeat("x", maxAsked)
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
			await[crewbody.TurnEnded](r, 1)
			require.Empty(t, said[crewbody.Permission](r))
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
	await[crewbody.TurnEnded](r, 1)
	require.Empty(t, said[crewbody.Permission](r))
	require.Contains(t, r.text(), errTooLarge.Message)
	require.NotContains(t, r.text(), "allowed")
}

// A request of which a person would see a part only is refused, and one that is shown is shown whole.
func TestToolCallIsShownWholeOrRefused(t *testing.T) {
	asking := func(command string) *rig {
		r := newRig(t, goAgent(t, crewtest.Script{Rules: []crewtest.Rule{{Steps: []crewtest.Step{{Ask: &crewtest.Ask{
			ToolCall: rawOf(`{"toolCallId":"t1","title":"Run","rawInput":{"command":"` + command + `; touch x"}}`),
			Allowed:  []crewtest.Step{{Text: "allowed"}},
		}}}}}}), quickStop)
		run, session := r.started()
		r.prompt(run, session, "p")
		return r
	}
	r := asking(strings.Repeat("x", maxAsked/2))
	require.Contains(t, string(await[crewbody.Permission](r, 1)[0].ToolCall), "xxx; touch x")
	r = asking(strings.Repeat("x", maxAsked))
	await[crewbody.TurnEnded](r, 1)
	require.Empty(t, said[crewbody.Permission](r))
	require.NotContains(t, r.text(), "allowed")
}
