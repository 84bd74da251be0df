package migrate

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestChatAPIContinuesWhereDeliveriesHaveStopped(t *testing.T) {
	t.Parallel()
	const chat = "chat-api-output-group"
	f := newFlightDeck(t, 2)
	topic, deliveries := f.catalog.MessageOutput.Name(), string(f.catalog.DeliveryGroup())
	group := f.catalog.Agent + "-" + chat
	f.create(topic)
	run := func() error { return ReturnOutputs(t.Context(), f.brokers, f.catalog, group, f.options...) }
	at := func(offset int64) func(string) map[int32]int64 {
		return func(string) map[int32]int64 { return map[int32]int64{0: offset, 1: offset} }
	}
	f.commitAt(group, at(3), topic)
	require.NoError(t, run())
	require.Equal(t, at(3)(topic), f.committed(group, topic), "no deliveries have run")

	f.commitAt(deliveries, func(string) map[int32]int64 { return map[int32]int64{0: 7, 1: 2} }, topic)
	for range 2 {
		require.NoError(t, run())
		require.Equal(t, map[int32]int64{0: 7, 1: 3}, f.committed(group, topic), "chat-api has run since in one of them")
	}

	// While members run, nothing moves.
	f.commitAt(deliveries, at(9), topic)
	join := func(group string) (leave func()) {
		member, err := kgo.NewClient(kgo.SeedBrokers(f.brokers...), kgo.ConsumeTopics(topic), kgo.ConsumerGroup(group), kgo.DisableAutoCommit())
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			described, err := f.admin.DescribeGroups(t.Context(), group)
			return err == nil && len(described[group].Members) == 1 && described[group].State == "Stable"
		}, wait, pause)
		return member.Close
	}
	leave := join(group)
	require.ErrorIs(t, run(), ErrActive)
	require.ErrorContains(t, run(), group)
	leave()
	leave = join(deliveries)
	require.NoError(t, run())
	require.Equal(t, map[int32]int64{0: 7, 1: 3}, f.committed(group, topic))
	leave()
	require.NoError(t, run())
	require.Equal(t, at(9)(topic), f.committed(group, topic))
}
