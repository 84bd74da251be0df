package updater_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lovoo/goka"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/turntable-streams/turntable/internal/testing/testbroker"
	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/internal/responder/respondertest"
	"github.com/turntable-streams/turntable/processors/memoir/updater"
	"github.com/turntable-streams/turntable/processors/worker"
	"github.com/turntable-streams/turntable/topics"
)

// harbour is a broker with the topics of an agent.
type harbour struct {
	*testing.T
	agent   string
	brokers []string
	client  *kgo.Client // reads memories and failures
	to      *processors.KafkaPublisher
}

func newHarbour(t *testing.T) *harbour {
	t.Helper()
	h := &harbour{T: t, agent: testbroker.Agent(), brokers: testbroker.Start(t)}
	var err error
	h.client, err = kgo.NewClient(kgo.SeedBrokers(h.brokers...),
		kgo.ConsumeTopics(h.agent+"-memoir-context", h.agent+"-memoir-dlq"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	require.NoError(t, err)
	t.Cleanup(h.client.Close)
	admin, compact := kadm.NewClient(h.client), "compact"
	_, err = admin.CreateTopics(t.Context(), 3, 1, map[string]*string{"cleanup.policy": &compact}, h.agent+"-memoir-context")
	require.NoError(t, err)
	_, err = admin.CreateTopics(t.Context(), 3, 1, nil, h.agent+"-memoir-context-session-end", h.agent+"-memoir-dlq",
		h.agent+"-message-output")
	require.NoError(t, err)
	h.to, err = processors.NewPublisher(h.brokers)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.to.Close()) })
	return h
}

func (h *harbour) publish(topic, key, value, id string) {
	h.Helper()
	require.NoError(h, h.to.Publish(h.Context(), processors.Outbound{
		Topic: h.agent + topic, Key: key, Value: []byte(value),
		Headers: goka.Headers{topics.HeaderID: []byte(id), topics.HeaderMemoirVersion: []byte("41")},
	}))
}

// run runs a worker until the test or stop ends it.
func (h *harbour) run(to processors.Publisher, u updater.Updater, c updater.Config) (stop func()) {
	h.Helper()
	w, err := updater.New(h.agent, to, u, c)
	require.NoError(h, err)
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- w.Run(ctx, h.brokers) }()
	var stopped atomic.Bool
	stop = func() {
		if stopped.CompareAndSwap(false, true) {
			cancel()
			require.NoError(h, <-ran)
		}
	}
	h.Cleanup(stop)
	return stop
}

// next waits for records of the worker.
func (h *harbour) next() []*kgo.Record {
	h.Helper()
	ctx, cancel := context.WithTimeout(h.Context(), time.Minute)
	defer cancel()
	records := h.client.PollFetches(ctx).Records()
	require.NotEmpty(h, records)
	return records
}

func counted(calls *atomic.Int64, f updater.Func) updater.Func {
	return func(ctx context.Context, e updater.Ended) (updater.Memory, error) {
		calls.Add(1)
		return f(ctx, e)
	}
}

// A worker that ends after it has written its record, and before it has acknowledged the snapshot, is followed by one that
// finds the record, also on the compacted topic of the memories.
func TestRedeliveredSnapshotWithAPublishedRecordIsNotAskedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		mode   worker.Mode
		update updater.Func
		topic  string
	}{
		"memory, share group":    {worker.ShareGroup, saying("Says hi"), "-memoir-context"},
		"memory, consumer group": {worker.ConsumerGroup, saying("Says hi"), "-memoir-context"},
		"failure, share group":   {worker.ShareGroup, failing(context.DeadlineExceeded), "-memoir-dlq"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarbour(t)
			h.publish("-memoir-context-session-end", "mira", snapshot, end+"/snapshot/1")
			var calls atomic.Int64
			broken := respondertest.NewInterrupted(h.to)
			config := updater.Config{Config: worker.Config{Mode: c.mode, Grace: time.Millisecond}}
			stop := h.run(broken, counted(&calls, c.update), config)
			<-broken.Written
			stop()
			require.EqualValues(t, 1, calls.Load())

			core, logs := observer.New(zap.InfoLevel)
			config.Logger = zap.New(core)
			h.run(h.to, counted(&calls, c.update), config)
			require.Eventually(t, func() bool {
				return logs.FilterMessage("record was settled before: it is not handled again").Len() == 1
			}, time.Minute, 10*time.Millisecond)
			require.EqualValues(t, 1, calls.Load())
			records := h.next()
			require.Len(t, records, 1, "the record is written once")
			require.Equal(t, h.agent+c.topic, records[0].Topic)
		})
	}
}

// A record without a text is written as an empty value. A null would make the group forget the user.
func TestEmptyMemoryIsNoTombstone(t *testing.T) {
	h := newHarbour(t)
	h.run(h.to, saying(""), updater.Config{})
	h.publish("-memoir-context-session-end", "mira", `{"session_id":"s","memoir_context":"","think_response":null}`, end+"/snapshot/1")
	require.NotNil(t, h.next()[0].Value)
}
