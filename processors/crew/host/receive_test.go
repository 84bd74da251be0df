package host

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/internal/crewbody"
	"github.com/turntable-streams/turntable/processors/crew/crewtest"
)

// A prompt has no time limit, so an answer that the host does not understand must end its turn too.
func TestAnswersOfAnyShapeEndTheTurn(t *testing.T) {
	for line, want := range map[string]string{
		`{"id":3,"error":{"code":-32603,"message":"failed"}}`:                        "failed (code -32603)",
		`{"id":3,"error":{"code":"ENOENT","message":"no such file"}}`:                `no such file (code "ENOENT")`,
		`{"id":3,"error":{"code":-32603.5,"message":"failed"}}`:                      "failed (code -32603.5)",
		`{"id":3,"error":{"code":-32603.0,"message":"failed"}}`:                      "failed (code -32603)",
		`{"id":3,"error":{"code":"-32603","message":"failed"}}`:                      "failed (code -32603)",
		`{"id":3,"error":{"code":-32603,"message":null}}`:                            "the agent gave no message (code -32603)",
		`{"id":3,"error":{"code":-32603,"message":"failed","message":"again"}}`:      "again (code -32603)",
		`{"id":3,"error":"failed"}`:                                                  "failed",
		`{"id":3,"error":["failed"]}`:                                                `["failed"]`,
		`{"id":3,"error":true}`:                                                      "true",
		`{"id":"3","error":{"code":-32603,"message":"failed"}}`:                      "failed (code -32603)",
		`{"id":3.0,"error":{"code":-32603,"message":"failed"}}`:                      "failed (code -32603)",
		`{"id":3,"id":3,"error":{"code":-32603,"message":"failed"}}`:                 "failed (code -32603)",
		`{"jsonrpc":2.0,"id":3,"method":null,"error":{"code":1,"message":"\ud83d"}}`: "\uFFFD (code 1)",
		`{"id":3}`:            "the answer to session/prompt is not of ACP",
		`{"id":3,"result":7}`: "the answer to session/prompt is not of ACP",
		`{"id":3,"result":{"stopReason":"end_turn","stopReason":"end_turn"}}`: "the answer to session/prompt is not of ACP",
	} {
		t.Run(line, func(t *testing.T) {
			r := newRig(t, goAgent(t, crewtest.Script{Rules: []crewtest.Rule{{Steps: []crewtest.Step{{Line: line}, {Hang: true}}}}}), quickStop)
			run, session := r.started()
			r.prompt(run, session, "p")
			require.Equal(t, crewbody.TurnEnded{Run: run, PromptID: "p", Error: want}, await[crewbody.TurnEnded](r, 1)[0])
		})
	}
}

func TestAnswersWithAnIDInQuotesAreAnswers(t *testing.T) {
	r := newRig(t, goAgent(t, crewtest.Script{Rules: []crewtest.Rule{{Steps: []crewtest.Step{
		{Line: `{"id":"3","error":null,"result":{"stopReason":"refusal"}}`}, {Hang: true},
	}}}}), quickStop)
	run, session := r.started()
	r.prompt(run, session, "p")
	require.Equal(t, "refusal", await[crewbody.TurnEnded](r, 1)[0].StopReason)
	require.Empty(t, said[crewbody.Problem](r))
}

// An agent can wait for the answer to its request without end, and the turn with it.
func TestRequestsThatAreNoneAreRefused(t *testing.T) {
	for line, id := range map[string]string{
		`{"id":7,"method":"fs/read_text_file","method":"terminal/create","params":{}}`: "7",
		`{"id":"a","method":5}`: `"a"`,
		`{"id":7,"method":"fs/read_text_file","params":{"path":"/a","path":"/b"}}`: "7",
	} {
		m, err := receive([]byte(line))
		require.Error(t, err, line)
		require.NotEmpty(t, m.Method, line)
		require.Equal(t, id, string(m.ID), line)
	}
	for _, line := range []string{`{"id":{"a":1,"a":2},"method":5}`, `{"id":3`, `[]`, `"x"`} {
		m, err := receive([]byte(line))
		require.Error(t, err, line)
		require.Empty(t, m.ID, line)
	}
}
