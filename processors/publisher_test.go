package processors_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/topics"
)

func newPublisher(t *testing.T, addrs []string, opts ...processors.Option) *processors.KafkaPublisher {
	t.Helper()
	p, err := processors.NewPublisher(addrs, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

func TestPublishedRecordsAreWhereJavaPutsThem(t *testing.T) {
	f := newField(t, 4)
	p := newPublisher(t, f.addrs)
	for i := range 20 {
		key := fmt.Sprintf("s-%d", i)
		out, err := processors.OutboundOf(topics.New(topics.Spec{Name: "answers"}, codec.String()), key, "v", key+"/0")
		require.NoError(t, err)
		require.NoError(t, p.Publish(t.Context(), out))
	}
	for _, r := range f.take("answers", 20) {
		require.Equal(t, codec.PartitionOf(string(r.Key), 4), r.Partition)
		require.Equal(t, string(r.Key)+"/0", header(r, topics.HeaderID))
		require.Equal(t, "v", string(r.Value))
	}
}

func TestRecordsOfOneCallAreWrittenInOrder(t *testing.T) {
	f := newField(t, 1)
	p := newPublisher(t, f.addrs)
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() {
			var list []processors.Outbound
			for j := range 5 {
				list = append(list, processors.Outbound{
					Topic: "answers", Key: fmt.Sprint(i), Value: fmt.Append(nil, j), Headers: goka.Headers{"n": []byte("x")},
				})
			}
			list = append(list, processors.Outbound{Topic: "answers", Key: fmt.Sprint(i)}) // a tombstone
			if err := p.Publish(context.Background(), list...); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	seen := map[string]string{}
	for _, r := range f.take("answers", 60) {
		if r.Value == nil {
			seen[string(r.Key)] += "-"
		}
		seen[string(r.Key)] += string(r.Value)
	}
	require.Len(t, seen, 10)
	for key, order := range seen {
		require.Equal(t, "01234-", order, key)
	}
}

func TestPublishSaysWhatWasNotWritten(t *testing.T) {
	f := newField(t, 1)
	p := newPublisher(t, f.addrs, processors.WithMaxRecordBytes(4<<10),
		processors.WithProperties(map[string]string{"retries": "1", "retry.backoff.ms": "1"}))
	fits := processors.Outbound{Topic: "answers", Key: "k", Value: []byte("v")}
	large := processors.Outbound{Topic: "answers", Key: "k", Value: []byte(strings.Repeat("secret", 1000))}
	err := p.Publish(t.Context(), fits, large)
	require.ErrorIs(t, err, processors.ErrTooLarge)
	require.NotContains(t, err.Error(), "secret")

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, p.Publish(ended, fits), context.Canceled)

	err = p.Publish(t.Context(), processors.Outbound{Topic: "nowhere", Key: "k"})
	require.ErrorContains(t, err, "nowhere")

	require.NoError(t, p.Publish(t.Context(), fits))
	require.Len(t, f.take("answers", 1), 1)
	require.NoError(t, p.Close())
	require.ErrorIs(t, p.Publish(t.Context(), fits), processors.ErrPublisherClosed)
	require.NoError(t, p.Close())
}

func TestPublisherContactsNobodyBeforeItPublishes(t *testing.T) {
	// Close does not wait for an attempt to connect; with this setting the attempt has ended before the tests have.
	p := newPublisher(t, []string{"127.0.0.1:1"}, processors.WithProperties(map[string]string{"retry.backoff.ms": "1"}))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	require.Error(t, p.Publish(ctx, processors.Outbound{Topic: "answers"}))
	for _, brokers := range [][]string{nil, {" "}} {
		_, err := processors.NewPublisher(brokers)
		require.ErrorIs(t, err, processors.ErrConfig)
		_, _, err = processors.ClientConfig(brokers)
		require.ErrorIs(t, err, processors.ErrConfig)
	}
	_, err := processors.NewPublisher([]string{"b:1"}, processors.WithProperties(map[string]string{"acks": "1"}))
	require.ErrorIs(t, err, processors.ErrConfig)
}
