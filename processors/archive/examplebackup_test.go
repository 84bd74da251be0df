package archive_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/turntable-streams/turntable/processors/archive"
	"github.com/turntable-streams/turntable/processors/embedded"
)

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
