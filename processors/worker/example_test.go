package worker_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/worker"
	"github.com/turntable-streams/turntable/topics"
)

// A worker that sends each record to a service, at most 32 at a time. A record that the service rejects, or fails for five
// times, goes to the topic webhooks-dlq.
func Example() {
	brokers := []string{"localhost:9092"}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	publisher, err := processors.NewPublisher(brokers)
	if err != nil {
		log.Fatal(err)
	}
	defer publisher.Close()

	errRejected := errors.New("the service rejects the record")
	send := func(ctx context.Context, r worker.Record) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://example.com/hook", strings.NewReader(string(r.Value)))
		if err != nil {
			return err
		}
		// The service deduplicates by this key: after a crash the record is sent again.
		req.Header.Set("Idempotency-Key", fmt.Sprintf("%s/%d/%d", r.Topic, r.Partition, r.Offset))
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		switch {
		case resp.StatusCode < 300:
			return nil
		case resp.StatusCode < 500:
			return errRejected
		default:
			return fmt.Errorf("the service answers %s", resp.Status)
		}
	}
	w, err := worker.New([]string{"webhooks"}, send,
		worker.Config{
			Group: "webhook-senders", Concurrency: 32, Timeout: time.Minute, Retry: worker.RetryPolicy{Retryable: func(err error) bool { return !errors.Is(err, errRejected) }}, DeadLetter: worker.DeadLetters(publisher, "webhooks-dlq", "webhook-senders"),
		},
	)
	if err != nil {
		log.Fatal(err)
	}
	if err := w.Run(ctx, brokers); err != nil {
		log.Fatal(err)
	}
}

// A worker that prints records, up to 32 at a time.
func ExampleNew() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	w, err := worker.New([]string{"lines"}, func(_ context.Context, r worker.Record) error {
		// An error would call the handler again. After a crash a record is handled again: recognize repeats by the ID.
		fmt.Println(string(r.Key), string(r.Value), string(r.Header(topics.HeaderID)))
		return nil
	}, worker.Config{Group: "line-readers", Concurrency: 32, Drop: true})
	if err != nil {
		log.Fatal(err)
	}
	if err := w.Run(ctx, []string{"localhost:9092"}); err != nil {
		log.Print(err)
	}
}

// A worker that makes at most 600 requests per minute to a service, at most 4 at a time for one tenant. Records of a tenant
// that has reached its limit do not hold up the records of others.
func ExampleConfig_limits() {
	tenant := func(r worker.Record) string { return string(r.Header("tenant")) }
	w, err := worker.New([]string{"orders"}, func(context.Context, worker.Record) error { return nil },
		worker.Config{Group: "webhooks", Concurrency: 64, Drop: true, Limits: []worker.Limit[worker.Record]{
			{Name: "tenant", Key: tenant, Concurrency: 4},
			{Name: "service", PerMinute: 600},
		}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(w.Health().Mode)
	// Output: auto
}
