package migrate

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/processors"
)

// create creates topics with as many partitions as the source.
func (f *flightDeck) create(names ...string) {
	f.Helper()
	partitions := len(f.ends(f.catalog.ThinkRequestResponse.Name()))
	created, err := f.admin.CreateTopics(f.Context(), int32(partitions), 1, nil, names...)
	require.NoError(f, err)
	require.NoError(f, created.Error())
	for _, name := range names {
		f.awaitPartitions(name, partitions)
	}
}

// write writes records of a session; an empty value is a tombstone.
func (f *flightDeck) write(topic, session string, values ...string) {
	f.Helper()
	for _, v := range values {
		r := &kgo.Record{Topic: topic, Key: []byte(session)}
		if v != "" {
			r.Value = []byte(v)
		}
		require.NoError(f, f.client.ProduceSync(f.Context(), r).FirstErr())
	}
}

// ends returns the end of each partition of a topic.
func (f *flightDeck) ends(topic string) map[int32]int64 {
	f.Helper()
	ends, err := f.admin.ListEndOffsets(f.Context(), topic)
	require.NoError(f, err)
	all := map[int32]int64{}
	ends.Each(func(o kadm.ListedOffset) { all[o.Partition] = o.Offset })
	return all
}

// committed returns the offset of a group in each partition of a topic that it has one in.
func (f *flightDeck) committed(group, topic string) map[int32]int64 {
	f.Helper()
	offsets, err := f.admin.FetchOffsets(f.Context(), group)
	require.NoError(f, err)
	all := map[int32]int64{}
	offsets.Each(func(o kadm.OffsetResponse) {
		if o.Topic == topic {
			all[o.Partition] = o.At
		}
	})
	return all
}

// commitAt commits offsets of a group in all partitions of topics.
func (f *flightDeck) commitAt(group string, at func(topic string) map[int32]int64, names ...string) {
	f.Helper()
	o := kadm.Offsets{}
	for _, topic := range names {
		for partition, offset := range at(topic) {
			o.AddOffset(topic, partition, offset, -1)
		}
	}
	require.NoError(f, f.admin.CommitAllOffsets(f.Context(), group, o))
}

// FlightDeck's application reads topics in the turn's group that the turn only writes. It would repeat the tool steps of the
// turn, and end sessions again.
func TestExportMovesFlightDeckPastWhatTheTurnHasWritten(t *testing.T) {
	t.Parallel()
	f := newFlightDeck(t, 2)
	group := string(f.catalog.Group())
	complete, ended, memories := f.catalog.ToolUseAllComplete.Name(), f.catalog.SessionEnd.Name(), f.catalog.MemoirContext.Name()
	expired, kept := group+"-KSTREAM-KEY-SELECT-0000000003-repartition", group+"-memoir-rekey-repartition"
	all := []string{complete, ended, memories, expired, kept}
	f.create(all...)
	f.respond("s", answered)
	for _, topic := range all {
		f.write(topic, "s", "{}")
	}
	f.commit()
	read := f.ends(memories)
	f.commitAt(group, f.ends, memories, kept, complete) // what FlightDeck had read; it never read session-end
	for _, topic := range all {
		f.write(topic, "s", "{}", "{}")
	}
	for range 2 { // it may be repeated
		_, err := Export(t.Context(), f.brokers, f.catalog, f.options...)
		require.NoError(t, err)
		for _, topic := range []string{complete, ended, expired} {
			require.Equal(t, f.ends(topic), f.committed(group, topic), topic)
		}
		for _, topic := range []string{memories, kept} {
			require.Equal(t, read, f.committed(group, topic), topic)
		}
		f.write(complete, "s", "{}")
	}
}

// The tombstones of used routes are behind the group's offsets, so FlightDeck does not read them.
func TestExportRemovesUsedReplyRoutesFromFlightDecksStore(t *testing.T) {
	t.Parallel()
	f := newFlightDeck(t, 2)
	topic, store := f.catalog.ReplyTo.Name(), string(f.catalog.Group())+"-reply-to-store-changelog"
	f.create(topic, store)
	const route = `{"callbackService":"harbor"}`
	for _, s := range []string{"used", "again", "open", "later"} {
		f.write(store, s, route)
	}
	f.respond("used", answered)
	f.commit()
	f.write(topic, "used", route, "")
	f.write(topic, "again", "", route)
	f.write(topic, "later", route)
	f.write(topic, "new", route)
	f.commitAt(string(f.catalog.Group()), f.ends, topic)
	f.write(topic, "later", "") // FlightDeck will read it
	for range 2 {
		_, err := Export(t.Context(), f.brokers, f.catalog, f.options...)
		require.NoError(t, err)
		routes := f.latest(store)
		var left []string
		for session, r := range routes {
			if r.Value != nil {
				left = append(left, session)
			}
		}
		slices.Sort(left)
		require.Equal(t, []string{"again", "later", "open"}, left)
		require.Contains(t, routes, "used")
		require.Equal(t, f.latest(topic)["used"].Partition, routes["used"].Partition)
	}
}

// Steps of a turn with a tool, as it really runs: FlightDeck has nothing to repeat afterwards.
func TestToolStepsOfTheTurnAreNotRepeatedByFlightDeck(t *testing.T) {
	t.Parallel()
	f := newFlightDeck(t, 1)
	group, complete := string(f.catalog.Group()), f.catalog.ToolUseAllComplete.Name()
	f.create(complete)
	f.respond("s", answered)
	f.commit()
	f.commitAt(group, f.ends, complete)
	_, err := f.run(t.Context())
	require.NoError(t, err)
	stop := f.turnRuns(processors.AtLeastOnce)
	require.Contains(t, f.enriched("s", "next"), history)
	f.respond("s", `{"session_id":"s","last_input_response":[{"role":"assistant","content":[]}],"tool_uses":[{"tool_use_id":"t1",`+
		`"name":"look","input":{}}],"end_turn":false}`)
	f.write(f.catalog.ToolUseResult.Name(), "s", `{"session_id":"s","tool_use_id":"t1","name":"look","result":{},"status":"success"}`)
	require.Eventually(t, func() bool { return f.size(complete) > 0 }, wait, pause)
	stop()
	_, err = Export(t.Context(), f.brokers, f.catalog, f.options...)
	require.NoError(t, err)
	require.Equal(t, f.ends(complete), f.committed(group, complete))
}
