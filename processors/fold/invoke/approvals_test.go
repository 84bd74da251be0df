package invoke

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/topics"
)

// testdata/approvals.jsonl lists answers to paused turns. For each, the streams before and after the pause fold to the batch.
func TestApprovals(t *testing.T) {
	for _, c := range table(t, "testdata/approvals.jsonl") {
		name := textAt(t, c, "name")
		t.Run(name, func(t *testing.T) {
			paused := &script{}
			for _, raw := range elementsOf(at(t, c, "events")) {
				e, err := folder.DecodeEvent(raw)
				require.NoError(t, err)
				paused.events = append(paused.events, e)
			}
			agent := newTeller(t, paidEnd, paidEnd)
			agent.runs = append([]*script{paused}, agent.runs...)
			d := newDesk(t, agent)
			before := d.invoke(body("s-1", hi), "Accept", jsonl)
			headers := []string{"Accept", jsonl}
			if string(at(t, c, "vercel")) == "true" {
				headers = append(headers, HeaderFormat, "vercel")
			}
			messages := string(at(t, c, "messages"))
			after := d.invoke(body("s-1", messages[1:len(messages)-1]), headers...)
			require.Equal(t, string(at(t, c, "status")), strconv.Itoa(after.status))

			outcomes := elementsOf(at(t, c, "outcomes"))
			if len(outcomes) == 0 {
				require.Empty(t, agent.asked)
				require.Empty(t, agent.payments())
				return
			}
			require.Len(t, agent.asked, 1)
			var decided []topics.Raw
			for _, one := range agent.asked[0].Decisions {
				decided = append(decided, newObject().text("interaction_id", one.Outcome.InteractionID).
					text("status", string(one.Outcome.Status)).with("args", one.Interaction.Args).value())
			}
			require.Equal(t, string(array(outcomes)), string(array(decided)))

			events := lines(before.body)
			events = append(events[:len(events)-1], lines(after.body)...)
			batch := d.invoke(body("s-1", ""), HeaderLastEvent, before.header.Get(HeaderTurn)+".1.0")
			require.Equal(t, compacted(folded(t, events).AppendEnvelope(nil)), compacted(at(t, batch.body, "data", "outputs")))
		})
	}
}
