package turn

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/topics"
)

// A model without usage or times can answer two steps with the same bytes. Their records name the steps.
func TestModelCanAnswerTwoStepsWithTheSameBytes(t *testing.T) {
	p := newPlay(t, withCosts)
	costs := map[string]bool{}
	for range 3 {
		es := p.send("message-input", message("again"))
		asked := the[enriched](t, es)
		id := header(topics.HeaderID, es.ids()[0]+"/think")
		answer := `{"session_id":"s1","last_input_response":[{"role":"assistant","content":"ok"}],"end_turn":true}`
		es = p.send("think-request-response", answer, id)
		require.Equal(t, "ok", the[answered](t, es).Content, string(asked.LatestInput))
		for _, effect := range es {
			if e, ok := effect.(emit); ok && e.Value.kind() == (modelCharged{}).kind() {
				costs[e.ID] = true
			}
		}
		require.Empty(t, p.repeat(p.past[len(p.past)-1]))
		require.Len(t, p.send("think-request-response", answer, id).letters(), 0, "read again")
	}
	require.Len(t, costs, 3, "each is charged")
	failed := `{"session_id":"s1","latest_input":{"a":1}}`
	for range 2 {
		es := p.send("message-input", message("again"))
		out := the[answered](t, p.send("think-dlq", failed, header(topics.HeaderID, es.ids()[0]+"/think")))
		require.Equal(t, topics.CodeThinkFailed, out.Error.Code)
	}
}
