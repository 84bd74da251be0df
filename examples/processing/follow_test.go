package main

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

// followed are the records of an agent's topics.
type followed struct {
	t       *testing.T
	ctx     context.Context
	client  *kgo.Client
	records []*kgo.Record
}

func follow(ctx context.Context, t *testing.T, brokers []string, names ...string) *followed {
	t.Helper()
	for i := range names {
		names[i] = "pilot-" + names[i]
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumeTopics(names...),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return &followed{t: t, ctx: ctx, client: client}
}

func (f *followed) write(topic, key, value string) {
	f.t.Helper()
	record := &kgo.Record{Topic: "pilot-" + topic, Key: []byte(key), Value: []byte(value)}
	require.NoError(f.t, f.client.ProduceSync(f.ctx, record).FirstErr())
}

// until returns the first record of a key that contains the text, of a topic, or of any if topic is empty.
func (f *followed) until(topic, key, text string) string {
	f.t.Helper()
	for i := 0; ; i++ {
		if i == len(f.records) {
			f.records = append(f.records, next(f.ctx, f.t, f.client))
		}
		r := f.records[i]
		if (topic == "" || r.Topic == "pilot-"+topic) && string(r.Key) == key && strings.Contains(string(r.Value), text) {
			return string(r.Value)
		}
	}
}
