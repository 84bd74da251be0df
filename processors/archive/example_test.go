package archive_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/turntable-streams/turntable/processors"
	"github.com/turntable-streams/turntable/processors/archive"
	"github.com/turntable-streams/turntable/processors/embedded"
	"github.com/turntable-streams/turntable/topics"
)

// partitions prints how many partitions a topic has.
func partitions(ctx context.Context, brokers []string, topic string) {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	listed, err := kadm.NewClient(client).ListTopics(ctx, topic)
	fmt.Println(len(listed[topic].Partitions), "partitions", err)
}

// stopped starts a broker on which an agent has been, and returns what Backup and the others need.
func stopped(ctx context.Context) (archive.Config, *embedded.Broker) {
	broker, err := embedded.Start(embedded.Config{})
	if err != nil {
		panic(err)
	}
	catalog, err := topics.For("support") // or agent.Agent.Topics
	if err != nil {
		panic(err)
	}
	cfg := archive.Config{Brokers: broker.Addrs(), Catalog: catalog}
	if err := processors.EnsureTopics(ctx, cfg.Brokers, processors.WithTopics(catalog), processors.WithPartitions(2)); err != nil {
		panic(err)
	}
	return cfg, broker
}

// A stopped agent gets more partitions. After an interruption, the same call continues.
func ExampleRepartition() {
	ctx := context.Background()
	cfg, broker := stopped(ctx)
	defer func() { _ = broker.Close() }()
	_, err := archive.Repartition(ctx, cfg, 4)
	fmt.Println(err)
	partitions(ctx, cfg.Brokers, cfg.Catalog.MessageInput.Name())
	fmt.Println(archive.Undo(ctx, cfg)) // it has ended, and there is nothing to take back
	// Output:
	// <nil>
	// 4 partitions <nil>
	// <nil>
}

// A stopped agent is saved to a directory and restored on another cluster.
func ExampleBackup() {
	ctx := context.Background()
	cfg, broker := stopped(ctx)
	defer func() { _ = broker.Close() }()
	parent, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(parent) }()
	dir := filepath.Join(parent, "support-2026-11-28")
	_, err = archive.Backup(ctx, cfg, dir)
	fmt.Println(err)
	_, err = archive.Backup(ctx, cfg, dir) // a directory holds one backup
	fmt.Println(errors.Is(err, archive.ErrDirectory))

	other, err := embedded.Start(embedded.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = other.Close() }()
	cfg.Brokers = other.Addrs()
	_, err = archive.Restore(ctx, cfg, dir)
	fmt.Println(err)
	partitions(ctx, cfg.Brokers, cfg.Catalog.MessageInput.Name())
	// Output:
	// <nil>
	// true
	// <nil>
	// 2 partitions <nil>
}
