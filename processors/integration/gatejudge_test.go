package integration

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

// judge compares the outcomes with what people were told, with what the tool did, and with the outputs.
func (h *hall) judge(gates int) {
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

// all reads the committed records of a topic up to its current end.
func (h *hall) all(topic string) []*kgo.Record {
	client, err := kgo.NewClient(kgo.SeedBrokers(h.brokers...))
	require.NoError(h.t, err)
	defer client.Close()
	admin := kadm.NewClient(client)
	ends, err := admin.ListCommittedOffsets(h.ctx, topic)
	require.NoError(h.t, err)
	require.NoError(h.t, ends.Error())
	reader, err := kgo.NewClient(kgo.SeedBrokers(h.brokers...), kgo.ConsumeTopics(topic), kgo.KeepControlRecords(),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(50*time.Millisecond))
	require.NoError(h.t, err)
	defer reader.Close()
	left := 0
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			left++
		}
	})
	var got []*kgo.Record
	for left > 0 {
		fetches := reader.PollFetches(h.ctx)
		require.NoError(h.t, h.ctx.Err(), "reading %s", topic)
		fetches.EachRecord(func(r *kgo.Record) {
			end, _ := ends.Lookup(r.Topic, r.Partition)
			if r.Offset < end.Offset && !r.Attrs.IsControl() {
				got = append(got, r)
			}
			if r.Offset == end.Offset-1 {
				left--
			}
		})
	}
	return got
}
