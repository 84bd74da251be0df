package think_test

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

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/embedded"
	"github.com/turntable-streams/turntable/processors/internal/responder/respondertest"
	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/worker"
)

// runWorker runs a worker until the test or stop ends it.
func runWorker(t *testing.T, brokers []string, to processors.Publisher, model think.Func, c think.Config) (stop func()) {
	t.Helper()
	w, err := think.New("pilot", to, model, c)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- w.Run(ctx, brokers) }()
	var stopped atomic.Bool
	stop = func() {
		if stopped.CompareAndSwap(false, true) {
			cancel()
			require.NoError(t, <-ran)
		}
	}
	t.Cleanup(stop)
	return stop
}

func TestRedeliveredStepWithAPublishedRecordIsNotAskedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		mode  worker.Mode
		model think.Func
		topic string
	}{
		"response, share group":    {worker.ShareGroup, saying("N4."), "pilot-think-request-response"},
		"response, consumer group": {worker.ConsumerGroup, saying("N4."), "pilot-think-request-response"},
		"failure, share group": {worker.ShareGroup, func(context.Context, think.Step) (think.Reply, error) {
			return think.Reply{}, context.DeadlineExceeded
		}, "pilot-think-dlq"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, err := embedded.Start(embedded.Config{})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, b.Close()) })
			client, err := kgo.NewClient(kgo.SeedBrokers(b.Addrs()...), kgo.ConsumeTopics(c.topic))
			require.NoError(t, err)
			t.Cleanup(client.Close)
			_, err = kadm.NewClient(client).CreateTopics(t.Context(), 3, 1, nil, "pilot-enriched-message-input",
				"pilot-think-request-response", "pilot-think-dlq", "pilot-message-output")
			require.NoError(t, err)
			to, err := processors.NewPublisher(b.Addrs())
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, to.Close()) })
			require.NoError(t, to.Publish(t.Context(), processors.Outbound{
				Topic: "pilot-enriched-message-input", Key: "s", Value: []byte(question),
				Headers: goka.Headers{"turntable.id": []byte("turn/1/enriched/0")},
			}))

			var asked atomic.Int64
			broken := respondertest.NewInterrupted(to)
			config := think.Config{Config: worker.Config{Mode: c.mode, Grace: time.Millisecond}}
			stop := runWorker(t, b.Addrs(), broken, counted(&asked, c.model), config)
			<-broken.Written
			stop()
			require.EqualValues(t, 1, asked.Load())

			core, logs := observer.New(zap.InfoLevel)
			config.Logger = zap.New(core)
			runWorker(t, b.Addrs(), to, counted(&asked, c.model), config)
			require.Eventually(t, func() bool {
				return logs.FilterMessage("record was settled before: it is not handled again").Len() == 1
			}, time.Minute, 10*time.Millisecond)
			require.EqualValues(t, 1, asked.Load())
			require.Equal(t, 1, len(client.PollFetches(t.Context()).Records()), "the record is written once")
		})
	}
}

// A turn that lost its row in a crash writes a step once more, which another worker had answered. The turn may have read that
// response before it asked again.
func TestStepThatItsTurnWritesAgainGetsItsEarlierResponseAgain(t *testing.T) {
	for name, c := range map[string]struct {
		from  string
		asked int64
	}{
		"the response is there":         {"1", 0},
		"it is older than the commit":   {"2", 1},
		"the header is not an offset":   {"x", 1},
		"the header names no offset":    {"-1", 1},
		"the partition has been longer": {"9", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, err := embedded.Start(embedded.Config{})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, b.Close()) })
			const out = "pilot-think-request-response"
			client, err := kgo.NewClient(kgo.SeedBrokers(b.Addrs()...), kgo.ConsumeTopics(out))
			require.NoError(t, err)
			t.Cleanup(client.Close)
			_, err = kadm.NewClient(client).CreateTopics(t.Context(), 1, 1, nil, "pilot-enriched-message-input", out, "pilot-message-output")
			require.NoError(t, err)
			to, err := processors.NewPublisher(b.Addrs())
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, to.Close()) })
			publish := func(topic, value string, headers goka.Headers) {
				require.NoError(t, to.Publish(t.Context(), processors.Outbound{Topic: topic, Key: "s", Value: []byte(value), Headers: headers}))
			}
			publish(out, "of another step", goka.Headers{"turntable.id": []byte("turn/0/enriched/0/think")})
			publish(out, "the first answer", goka.Headers{
				"turntable.id": []byte("turn/1/enriched/0/think"), "turntable.events": []byte("none"),
			})
			publish("pilot-enriched-message-input", question, goka.Headers{
				"turntable.id": []byte("turn/1/enriched/0"), "turntable.answers-from": []byte(c.from),
			})
			var asked atomic.Int64
			runWorker(t, b.Addrs(), to, counted(&asked, saying("once more")), think.Config{})
			var got []*kgo.Record
			for len(got) < 3 {
				got = append(got, client.PollFetches(t.Context()).Records()...)
			}
			require.Equal(t, c.asked, asked.Load())
			if c.asked == 0 {
				require.Equal(t, string(got[1].Value), string(got[2].Value))
				require.ElementsMatch(t, got[1].Headers, got[2].Headers)
				require.Equal(t, got[1].Key, got[2].Key)
			}
		})
	}
}

func TestRedeliveredStepOfAnEndedTurnIsSkipped(t *testing.T) {
	b, err := embedded.Start(embedded.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Addrs()...))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	_, err = kadm.NewClient(client).CreateTopics(t.Context(), 3, 1, nil, "pilot-enriched-message-input",
		"pilot-think-request-response", "pilot-think-dlq", "pilot-message-output")
	require.NoError(t, err)
	to, err := processors.NewPublisher(b.Addrs())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, to.Close()) })
	publish := func(topic, value, id string) {
		require.NoError(t, to.Publish(t.Context(), processors.Outbound{
			Topic: topic, Key: "s", Value: []byte(value), Headers: goka.Headers{"turntable.id": []byte(id)},
		}))
	}
	publish("pilot-enriched-message-input", question, "turn/1/enriched/0")

	var asked atomic.Int64
	started := make(chan struct{}, 2)
	hung := counted(&asked, func(ctx context.Context, _ think.Step) (think.Reply, error) {
		started <- struct{}{}
		<-ctx.Done()
		return think.Reply{}, ctx.Err()
	})
	stop := runWorker(t, b.Addrs(), to, hung, think.Config{Config: worker.Config{Grace: time.Millisecond}})
	<-started
	stop() // the call is interrupted, and the turn ends while no worker runs
	publish("pilot-message-output", "{}", "turn/0/output/0")

	core, logs := observer.New(zap.InfoLevel)
	runWorker(t, b.Addrs(), to, hung, think.Config{Config: worker.Config{Grace: time.Millisecond, Logger: zap.New(core)}})
	require.Eventually(t, func() bool {
		return logs.FilterMessage("record was settled before: it is not handled again").Len() == 1
	}, time.Minute, 10*time.Millisecond)
	require.EqualValues(t, 1, asked.Load())
}
