package whole

import (
	"maps"
	"slices"
	"strconv"

	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// judge compares the outcomes with what people were told, with what the tool did, and with the outputs.
func (h *gateWorld) judge(gates int) {
	outcomes := map[string]topics.GateOutcome{}
	records := map[string]int{}
	for _, r := range h.all(h.catalog.GateOutcomes.Name()) {
		o := h.catalog.GateOutcomes.Codec().Unmarshal(r.Value)
		require.NoError(h.t, o.Err)
		session := string(r.Key)
		if before, ok := outcomes[session]; ok {
			require.Equal(h.t, before, o.Value, "two outcomes of the gate of %s", session)
			require.Equal(h.t, processors.AtLeastOnce, h.guarantee, "two records of the outcome of %s", session)
		}
		outcomes[session] = o.Value
		records[session]++
	}
	require.Len(h.t, outcomes, gates)
	h.mu.Lock()
	defer h.mu.Unlock()
	count := map[topics.GateStatus]int{}
	for session, o := range outcomes {
		count[o.Status]++
		n, err := strconv.Atoi(session[1:])
		require.NoError(h.t, err)
		if n%4 == 3 {
			require.Equal(h.t, topics.GateTimedOut, o.Status, session)
		}
		if told, ok := h.told[session]; ok {
			require.Equal(h.t, string(o.Status)+" "+o.DecisionID, told, session)
		}
		ran := h.ran[session]
		if o.Status != topics.GateApproved {
			require.Empty(h.t, ran, "the tool ran for %s, which was %s", session, o.Status)
			continue
		}
		if n%10 != 8 { // a cancelled turn may end before its approved call runs
			require.Len(h.t, ran, 1, session)
		}
		for _, args := range ran {
			require.Equal(h.t, o.EffectiveArgsSHA256, topics.ArgsSHA256(topics.Raw(args)), session)
		}
	}
	outputs := map[string]string{}
	for _, r := range h.all(h.catalog.MessageOutput.Name()) {
		id := headerOf(r, topics.HeaderID)
		if before, ok := outputs[string(r.Key)]; ok {
			require.Equal(h.t, before, id, "two outputs of %s", r.Key)
		}
		outputs[string(r.Key)] = id
	}
	require.Len(h.t, slices.Collect(maps.Keys(outputs)), gates)
	h.t.Logf("%d gates: %v", gates, count)
}
